"""From archives, hub data sets or plain parallel text to a data set that every trainer reads.

``commands`` read the options and plan what to do with the text that ``sources`` yield; ``stages``
are the steps for each set, and ``pipeline`` runs each of them once, in a folder in which it
replaces no file of others. ``manifest`` reads what was done, so that new text is treated in the
same way. ``dictionary`` and ``indexed`` write the formats of ``fairseq-preprocess``.

Imports neither torch nor fairseq.
"""
