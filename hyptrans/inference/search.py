"""The search of :mod:`hyptrans.inference.beams` for models of torch."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.inference.beams import Array, Found, beam_of
from hyptrans.inference.beams import search as search_beams
from hyptrans.inference.options import Settings
from hyptrans.layers.curvature import kept_curvatures


@torch.inference_mode()
def search(
    models: Sequence[Any],
    source: Tensor,
    longest: int,
    settings: Settings,
    prefix: Array | None = None,
) -> list[list[Found]]:
    """Return each sentence's hypotheses, best first; fewer than ``beam`` if fewer were found.

    Args:
        models: each an ``EncoderDecoder`` for the same dictionaries; their probabilities are
            averaged.
        source: tokens ``[B, S]``, padded on either side, with the end of sentence.
        longest: most tokens of a hypothesis, without its end.
        settings: settings of the search.
        prefix: tokens ``[B, P]`` that hypotheses begin with, padded on the right.

    Raises:
        UserError: a sentence has no hypothesis with a numeric score, or no length is allowed.
    """
    words = models[0].decoder.dictionary
    longest = min(longest, *(model.decoder.longest - 1 for model in models))
    begun = np.zeros((len(source), 0), dtype=np.int64) if prefix is None else prefix
    with kept_curvatures(*models):
        decoding = _Decoding(models, source, beam_of(settings, words), settings.temperature)
        return search_beams(decoding, longest, settings, begun, words)


class _Decoding:
    """A batch between decoding steps, on the device of the source."""

    def __init__(
        self, models: Sequence[Any], source: Tensor, beam: int, temperature: float
    ) -> None:
        self.models, self.beam, self.temperature = models, beam, temperature
        self.memories = [model.encoder.memory(source) for model in models]
        self.states = [model.decoder.start() for model in models]
        self.tokens = source.new_empty(len(source) * beam, 0)
        self.left: Tensor | None = None
        """The sentences that continue, if others ended since the last step."""

    def keep(self, sentences: Array) -> None:
        self.left = self._on_device(sentences)
        self.memories = [(memory[self.left], mask[self.left]) for memory, mask in self.memories]

    def scores(self, tokens: Array, parents: Array, position: int) -> Array:
        made: Array = self._scores(tokens, parents, position).cpu().numpy()
        return made

    def best(self, tokens: Array, parents: Array, position: int) -> tuple[Array, Array]:
        scores = self._scores(tokens, parents, position)
        values, best = scores.topk(min(2 * self.beam + 2, scores.size(2)))
        return values.cpu().numpy(), best.cpu().numpy()

    def _scores(self, tokens: Array, parents: Array, position: int) -> Tensor:
        if position and (self.beam > 1 or self.left is not None):
            order = self._on_device(parents.ravel())
            self.tokens = self.tokens.index_select(0, order)
            for state in self.states:
                state.reorder(order, self.left)
            self.left = None
        self.tokens = torch.cat([self.tokens, self._on_device(tokens.reshape(-1, 1))], dim=1)
        found = []
        for model, memory, state in zip(self.models, self.memories, self.states, strict=True):
            logits = model.decoder.predict(self.tokens, *memory, state)[:, -1]
            logits = logits if self.temperature == 1 else logits / self.temperature
            found.append(F.log_softmax(logits, -1, dtype=torch.float32))
        scores = found[0]
        if len(found) > 1:
            scores = torch.stack(found).logsumexp(0) - math.log(len(found))
        scores.nan_to_num_(-math.inf, math.inf, -math.inf)
        return scores.view(-1, self.beam, scores.size(1))

    def _on_device(self, numbers: Array) -> Tensor:
        return torch.from_numpy(numbers).to(self.tokens.device)
