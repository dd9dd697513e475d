"""Score given translations: predict each subword from the source and the subwords before it."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hyptrans.inference.batches import padded


def force(
    models: Sequence[Any], source: Tensor, targets: Sequence[Sequence[int]], *, look: bool
) -> tuple[Tensor, Tensor]:
    """Return tokens' log-probabilities ``[B, T]`` and source weights ``[B, T, S]``, on the CPU.

    Args:
        models: each an ``EncoderDecoder`` for the same dictionaries; probabilities and weights are
            averaged.
        source: tokens ``[B, S]``, padded on the left.
        targets: tokens of each row, with the end of the sentence.
        look: compute the weights; without it they have no columns.
    """
    words = models[0].decoder.dictionary
    # each token is predicted from those before it, the first from the end-of-sentence token
    before = [[words.eos(), *row[:-1]] for row in targets]
    wanted, previous = (padded(rows, words).to(source.device) for rows in (targets, before))
    each, weights = [], []
    for model in models:
        memory = model.encoder.memory(source)
        found = model.decoder.predict(previous, *memory).log_softmax(-1)
        each.append(found.gather(-1, wanted.unsqueeze(-1)).squeeze(-1).double())
        none = found.new_zeros(*wanted.shape, 0)
        weights.append(model.decoder.look(previous, *memory) if look else none)
    mean = torch.stack(each).logsumexp(0) - math.log(len(models))
    return mean.cpu(), torch.stack(weights).mean(0).cpu()
