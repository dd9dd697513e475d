"""``hyptrans train``: from a data folder to a model folder, with transformers and accelerate.

The data flow: indexed sets -> batches by tokens (:mod:`.batches`) -> the model, its loss, schedule
and validation by BLEU (:mod:`.trainer`) -> the best parameters or the average of the last ones,
whichever translate better (:mod:`.run`) -> a model folder (:mod:`.command`).
"""
