"""From archives, hub data sets or plain parallel text to a data set that every trainer reads.

``commands`` read the options and make a plan of what ``sources`` yield; ``stages`` are the steps
that its sets go through, and ``pipeline`` runs each of them once, in a ``folder`` where nothing of
another's is replaced. ``manifest`` says what was done, ``recorded`` reads it to do the same with
new text. ``dictionary`` and ``indexed`` write the formats of ``fairseq-preprocess``.

Imports neither torch nor fairseq.
"""
