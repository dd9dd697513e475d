"""From archives, hub data sets or plain parallel text to a binarized fairseq data set.

The importable code behind the commands in ``data-prep/``. Imports neither torch nor fairseq:
binarizing is left to the ``fairseq-preprocess`` command, which runs as a process of its own.

``commands`` read the options and make a plan of what ``sources`` yield; ``stages`` takes its sets
through ``steps``, each done once, which ``journal`` sees to; ``pipeline`` puts it all together, in
a ``folder`` where nothing of another's is replaced, and ends with ``manifest``.
"""
