"""Encoder and decoding step as modules with only tensors as inputs and outputs, for export.

``encoder.onnx``: ``tokens`` ``[sentences, length]`` int64, padded on the left -> ``source_0``,
``source_1``, ...: two float32 tensors per decoder layer, which it keeps of the source. These are
keys and values ``[sentences, heads, length, width / heads]``, or in linear attention sums
``[sentences, heads, d, e]`` and ``[sentences, heads, d]``.

``decoder.onnx`` takes one step for ``beam`` hypotheses of each sentence; ``docs/serve.md`` lists
its inputs and outputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.layers.attention import Memory, State


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
        self.kept = [layer.attention.kept for layer in state.layers]
        self.source_kinds = [type(layer.cross_attention.kept) for layer in state.layers]
        # the points of all tokens are the same in every step
        self.table = state.logits.kept

    def empty(self, rows: int, earlier: int = 0) -> list[Tensor]:
        """Return a state of ``rows`` hypotheses: zeros, for ``earlier`` positions or for sums."""
        made: list[Tensor] = []
        for kept in self.kept:
            if isinstance(kept, Memory):
                both = torch.cat(kept, dim=-1)
                made.append(both.new_zeros(rows, both.size(1), earlier, both.size(3)))
            else:
                made += [one.new_zeros(rows, *one.shape[1:]) for one in kept]
        return made

    def forward(
        self,
        tokens: Tensor,
        parents: Tensor,
        position: Tensor,
        padding: Tensor,
        source: list[Tensor],
        before: list[Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        decoder, allowed = self.model.decoder, ~padding[:, None, None, :]
        earlier = iter([one.index_select(0, parents.flatten()) for one in before])
        after: list[Tensor] = []

        def through(number: int, x: Tensor) -> Tensor:
            layer, kind = decoder.layers[number], type(self.kept[number])
            query, key, value = (_by_row(one) for one in layer.attention.project(x, position))
            if kind is Memory:
                # keys and values side by side: one tensor to reorder and to extend
                both = torch.cat([next(earlier), torch.cat([key, value], -1)], 2)
                after.append(both)
                pair = both.split([key.size(-1), value.size(-1)], -1)
                mixed = layer.attention.mix(query, *pair, allowed=None, is_causal=False)
            else:
                state = State(kind(next(earlier), next(earlier)))
                mixed = layer.attention.mix_next(query, key, value, state, None)
                after.extend(state.kept)
            x = layer.attention.merge(_by_sentence(mixed, tokens), x)
            kept = self.source_kinds[number](*source[2 * number : 2 * number + 2])
            mixed = layer.cross_attention.recall(layer.cross_attention.query(x), kept, allowed)
            return layer.feed_forward(layer.cross_attention.merge(mixed, x))

        # hypotheses of a sentence are its positions, as all of them look at the same source
        x = decoder.embed_positions(decoder.embed_tokens(tokens), position[None])
        states = decoder.through_layers(x, through)
        scores = F.log_softmax(decoder.logits(states[-1], State(self.table)), -1)
        best = scores.topk(torch.sym_min(2 * tokens.size(1) + 2, scores.size(2)))
        return scores, *best, after


def _by_row(heads: Tensor) -> Tensor:
    """``[sentences, heads, beam, d]`` -> ``[sentences * beam, heads, 1, d]``."""
    return heads.transpose(1, 2).reshape(-1, heads.size(1), 1, heads.size(3))


def _by_sentence(heads: Tensor, tokens: Tensor) -> Tensor:
    """Inverse of :func:`_by_row`; tokens ``[sentences, beam]``."""
    return heads.transpose(1, 2).reshape(*tokens.shape, heads.size(1), -1).transpose(1, 2)
