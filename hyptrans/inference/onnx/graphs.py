"""Encoder and decoding step as modules with only tensors as inputs and outputs, for export.

``encoder.onnx``: ``tokens`` ``[sentences, length]`` int64, padded on the left -> ``source_0``,
``source_1``, ...: two float32 tensors per decoder layer, which it keeps of the source. These are
keys and values ``[sentences, heads, length, width / heads]``, or in linear attention sums
``[sentences, heads, d, e]`` and ``[sentences, heads, d]``.

``decoder.onnx``: one step for ``beam`` hypotheses of each sentence.

================  ============================  =================================================
input             shape                         meaning
================  ============================  =================================================
``tokens``        ``[sentences, beam]`` int64   the last token of each hypothesis
``parents``       ``[sentences, beam]`` int64   the row of ``state_*`` that each hypothesis goes on
``position``      ``[1]`` int64                 number of tokens before, 0 in the first step
``padding``       ``[sentences, length]`` bool  true where the source has padding
``source_*``      as the encoder's outputs
``state_*``       ``[rows, heads, earlier, d]`` what layers keep of earlier tokens, two tensors
                  or sums                       each; ``rows`` and ``earlier`` are 0 or more
================  ============================  =================================================

It returns ``scores`` ``[sentences, beam, symbols]``, natural log-probabilities of the next token;
the largest of them, ``best_scores`` ``[sentences, beam, 2 * beam + 2]``, and their ``best_tokens``;
and ``next_*``, the ``state_*`` of the next step, where hypothesis ``j`` of sentence ``i`` has row
``i * beam + j``.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.layers.attention import Memory
from hyptrans.layers.hypformer_linear_attention import Sums


class SourceGraph(nn.Module):
    """The encoder, and the keys and values that the decoder computes from its output."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> list[Tensor]:
        memory, padding = self.model.encoder.memory(tokens)
        allowed = ~padding[:, None, None, :]
        kept: list[Tensor] = []
        for layer in self.model.decoder.layers:
            kept += layer.cross_attention.remember(memory, allowed)
        return kept


class StepGraph(nn.Module):
    """One decoding step for every hypothesis; shapes as in the module's docstring."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        decoder, tokens = model.decoder, torch.tensor([[model.decoder.dictionary.eos()]])
        state = decoder.start()
        decoder.predict(tokens, *model.encoder.memory(tokens), state)
        self.kinds = [type(layer.attention.kept) for layer in state.layers]
        self.source_kinds = [type(layer.cross_attention.kept) for layer in state.layers]
        # the points of all tokens are the same in every step
        self.table = state.logits.kept

    def forward(
        self,
        tokens: Tensor,
        parents: Tensor,
        position: Tensor,
        padding: Tensor,
        source: list[Tensor],
        before: list[Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        decoder, rows = self.model.decoder, parents.flatten()
        state = decoder.start()
        state.logits.kept = self.table
        for i, layer in enumerate(state.layers):
            pair = (one.index_select(0, rows) for one in before[2 * i : 2 * i + 2])
            layer.attention.kept = self.kinds[i](*pair)
            layer.cross_attention.kept = self.source_kinds[i](*source[2 * i : 2 * i + 2])
        flat = tokens.flatten()[:, None]
        x = decoder.embed_positions(decoder.embed_tokens(flat), position.expand_as(flat))
        states = decoder.through_layers(
            x, lambda number, x: decoder.layers[number](x, None, x, padding, state.layers[number])
        )
        logits = decoder.logits(states[-1], state.logits)[:, 0]
        scores = F.log_softmax(logits, -1).unflatten(0, tokens.shape)
        best = scores.topk(torch.sym_min(2 * tokens.size(1) + 2, scores.size(2)))
        after = [one for layer in state.layers for one in layer.attention.kept]
        return scores, *best, after


def empty_state(model: Any, rows: int) -> list[Tensor]:
    """Return every layer's state before the first token: no positions, or sums that are zero."""
    decoder = model.decoder
    tokens = torch.full((rows, 1), decoder.dictionary.eos())
    state = decoder.start()
    decoder.predict(tokens, *model.encoder.memory(tokens), state)
    made: list[Tensor] = []
    for layer in state.layers:
        kept = cast("Memory | Sums", layer.attention.kept)
        made += [one[:, :, :0] if isinstance(kept, Memory) else one * 0 for one in kept]
    return made
