"""From archives, hub data sets or plain parallel text to a binarised fairseq data set.

The importable code behind the commands in ``data-prep/``. Imports neither torch nor fairseq:
binarising is left to the ``fairseq-preprocess`` command, which runs as a process of its own.
"""
