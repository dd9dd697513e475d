"""The Transformer's decoder for one token after another."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.seq2seq.transformer_layers import DecoderLayer

Map = Callable[[Tensor], Tensor]


class Step:
    """A decoder layer for one token after another; its parameters are looked up once.

    Keys and values are ``[S, B, D]`` and rows ``[B, D]``: with a row for each hypothesis, those of
    the source too, as in fairseq: the numbers follow the shapes.
    """

    def __init__(self, layer: DecoderLayer) -> None:
        own, cross = layer.self_attn, layer.encoder_attn
        self.own, self.cross = (
            _maps(one.q_proj, one.k_proj, one.v_proj, one.out_proj) for one in (own, cross)
        )
        self.feed_forward = _maps(layer.fc1, layer.fc2)
        norms = (layer.self_attn_layer_norm, layer.encoder_attn_layer_norm, layer.final_layer_norm)
        self.norms = [_norm(one) for one in norms]
        self.before, self.activation, self.heads = layer.before, layer.activation, own.heads
        self.past: list[Tensor] = []
        self.source: list[Tensor] = []
        self.order: Tensor | None = None
        """What :attr:`past` is to be reordered by, together with the next extension."""

    def reorder(self, order: Tensor, *, some_left: bool) -> None:
        """Let row ``i`` be what ``order[i]`` was; the source's, where only some are left."""
        if not self.past:
            return
        self.order = order if self.order is None else self.order.index_select(0, order)
        if some_left:
            self.source = [one.index_select(1, order) for one in self.source]

    def __call__(self, x: Tensor, memory: Tensor, padding: Tensor | None) -> Tensor:
        """One layer; memory ``[S, sentences, D]``, padding ``[sentences, 1, 1, 1, S]``."""
        asked = self.norms[0](x) if self.before else x
        new = [one(asked) for one in self.own[1:3]]
        if self.past:
            new = [self._extended(*one) for one in zip(self.past, new, strict=True)]
        else:
            new = [one[None] for one in new]
        self.past, self.order = new, None
        x = self._end(0, x, self._attend(asked, self.own, new, None))
        asked = self.norms[1](x) if self.before else x
        if not self.source:
            memory = memory.repeat_interleave(x.size(0) // memory.size(1), 1)
            self.source = [one(memory) for one in self.cross[1:3]]
        x = self._end(1, x, self._attend(asked, self.cross, self.source, padding))
        inner = self.feed_forward[0](self.norms[2](x) if self.before else x)
        return self._end(2, x, self.feed_forward[1](self.activation(inner)))

    def _extended(self, past: Tensor, new: Tensor) -> Tensor:
        if self.order is None:
            return torch.cat([past, new[None]])
        if torch.is_grad_enabled():
            return torch.cat([past.index_select(1, self.order), new[None]])
        # one pass over what may be the most of a step's memory
        made = new.new_empty(len(past) + 1, *new.shape)
        torch.index_select(past, 1, self.order, out=made[:-1])
        made[-1] = new
        return made

    def _attend(
        self, x: Tensor, maps: list[Map], kept: list[Tensor], padding: Tensor | None
    ) -> Tensor:
        rows, width = x.shape
        size = width // self.heads
        query = (maps[0](x) * size**-0.5).view(rows * self.heads, 1, size)
        key, value = (one.view(one.size(0), -1, size) for one in kept)
        scores = torch.bmm(query, key.permute(1, 2, 0))
        if padding is not None:
            each = scores.view(padding.size(0), -1, self.heads, 1, key.size(0))
            each.masked_fill_(padding, -torch.inf)
        mixed = torch.bmm(torch.softmax(scores, -1), value.transpose(0, 1))
        return maps[3](mixed.view(rows, width))

    def _end(self, norm: int, x: Tensor, update: Tensor) -> Tensor:
        """The end of a residual block."""
        return x + update if self.before else self.norms[norm](x + update)


def _maps(*layers: nn.Module) -> list[Map]:
    """What layers compute, without the way through a module where nothing was put on it."""
    return [
        partial(F.linear, weight=one.weight, bias=one.bias)
        if type(one) is nn.Linear and not _has_hooks(one)
        else one
        for one in layers
    ]


def _norm(layer: nn.Module) -> Map:
    if type(layer) is not nn.LayerNorm or _has_hooks(layer):
        return layer
    shape, others = layer.normalized_shape, (layer.weight, layer.bias, layer.eps)
    return lambda x: torch.layer_norm(x, shape, *others)


def _has_hooks(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer))


@dataclass
class TransformerState:
    """What the decoder keeps between steps.

    Attributes:
        steps: the layers, as one token after another goes through them.
        padded: whether the source had padding at the first step.
    """

    steps: list[Step]
    padded: bool | None = None
    logits: Any = None

    def reorder(self, new_order: Tensor, sentences: Tensor | None = None) -> None:
        """Let hypothesis ``i`` be what ``new_order[i]`` was; with ``sentences``, some are left."""
        for step in self.steps:
            step.reorder(new_order, some_left=sentences is not None)
