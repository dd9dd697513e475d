"""``hyptrans train``: from a prepared data folder to a model folder, over transformers and accelerate.

The way of the data: indexed sets -> batches by tokens (:mod:`.batches`) -> the model of
:mod:`hyptrans.transformers` -> loss, schedule, validation by BLEU (:mod:`.trainer`) -> the average of
the last checkpoints or the best one, whichever translates better -> a model folder
(:mod:`.command`).
"""
