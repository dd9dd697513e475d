"""From archives, hub data sets or plain parallel text to a binarized fairseq data set.

The importable code behind the commands in ``data-prep/``. Imports neither torch nor fairseq:
binarizing is left to the ``fairseq-preprocess`` command, which runs as a process of its own.
"""
