"""Points near a shell: time beside ``width`` coordinates, equal lengths in a head, pulled radii."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry.lorentz import lift
from hyptrans.geometry.precision import at_least_float32
from hyptrans.geometry.space import Space
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers import hybonet
from hyptrans.layers.attention import Attention, Map
from hyptrans.layers.hypformer import HTC
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits, mixed_centroids, scaled_query
from hyptrans.layers.positions import position_vectors
from hyptrans.layers.sphere import LEAST_LENGTH
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import LorentzConfig
from hyptrans.seq2seq.parts import Parts, Role

INNER_LOG_SCALE = math.log(5.0)
"""Initial log length of space parts in heads and inside the feed-forward, as in `sphere`."""


def linear(in_space: int, out_space: int, projections: int = 1) -> HTC:
    """Return a map from points to space coordinates, small at first so that residuals dominate."""
    gain = hybonet.INITIAL_WEIGHT_BOUND / math.sqrt(6 / (in_space + out_space))
    return HTC(in_space, out_space, gain=gain, projections=projections)


class ShellNorm(nn.Module):
    """The end of a block: adds a dropped-out update to a point and pulls the sum towards a shell.

    A space part ``v`` becomes the point above ``L (|v| / L)^(1 - a) v / |v|``. ``L`` (initially 10)
    and ``a`` (initially 1/2) are learned. Far points have radius ``log(2 |v|)``; theirs becomes
    ``a`` times the shell's plus ``1 - a`` times their own. At ``a = 1`` all points lie on one
    sphere.

    Shapes: point ``[..., space + 1]``, update ``[..., space]`` -> ``[..., space + 1]``.

    Args:
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the update.
    """

    def __init__(self, *, c: float, dropout: float = 0.0) -> None:
        super().__init__()
        self.c, self.dropout = c, dropout
        self.log_length = nn.Parameter(torch.tensor(hybonet.INITIAL_LOG_SCALE))
        self.pull = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        v = x[..., 1:] + relu_dropout(update, self.dropout, training=self.training)
        length = v.norm(dim=-1, keepdim=True).clamp_min(LEAST_LENGTH)
        log_factor = torch.sigmoid(at_least_float32(self.pull)) * (self.log_length - length.log())
        return lift(v * log_factor.exp(), c=self.c)


class ShellPositions(nn.Module):
    """Position encoding: adds the position's vector to a point's space part, then normalizes.

    Shapes: x ``[B, T, space + 1]``, positions ``[B, T]`` (from 0) -> ``[B, T, space + 1]``.
    """

    def __init__(
        self, space: int, max_positions: int, *, learned: bool, c: float, dropout: float
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.vectors = position_vectors(max_positions, space, learned=learned)
        self.norm = ShellNorm(c=c)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        x = self.norm(x, self.vectors(positions))
        if not self.dropout or not self.training:
            return x
        return lift(relu_dropout(x[..., 1:], self.dropout), c=self.norm.c)


class ShellAttention(Attention):
    """Attention by Lorentzian distances; each head has ``space / heads`` coordinates and a time.

    Queries, keys and values each have their own length. The weights are
    ``softmax(-d2(q, k) / tau)`` with learned ``tau``; the values' weighted centroid is the result.

    Args:
        space: space coordinates of a state.
        heads: number of heads.
        memory_width: space coordinates of a memory state; for cross-attention only.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the update that is added to the state.
        attention_dropout: probability on the inputs of the query, key and value maps.
        causal: no position sees a later one.
    """

    def __init__(
        self,
        space: int,
        heads: int,
        *,
        memory_width: int | None = None,
        c: float,
        dropout: float,
        attention_dropout: float,
        causal: bool,
    ) -> None:
        super().__init__(space, heads, causal=causal)
        self.c, self.attention_dropout = c, attention_dropout
        self.add_maps(lambda width, maps: linear(width, space, maps), memory_width)
        maps = {"qkv": 3} if memory_width is None else {"q": 1, "kv": 2}
        self.log_lengths = nn.ParameterDict(
            {name: torch.full((many, 1, 1), INNER_LOG_SCALE) for name, many in maps.items()}
        )
        self.tau = nn.Parameter(torch.tensor((space + 1) ** 0.5))
        self.out = linear(space, space)
        self.norm = ShellNorm(c=c, dropout=dropout)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        if self.attention_dropout and self.training:
            x = lift(relu_dropout(x[..., 1:], self.attention_dropout), c=self.c)
        mapped = getattr(self, name)(x).unflatten(-1, (len(name), self.heads, -1))
        unit = F.normalize(mapped, dim=-1, eps=LEAST_LENGTH)
        points = lift(unit * at_least_float32(self.log_lengths[name]).exp(), c=self.c)
        first, *rest = (made.transpose(1, 2) for made in points.unbind(2))
        return (scaled_query(first, self.tau) if "q" in name else first), *rest

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        return mixed_centroids(query, key, value, c=self.c, allowed=allowed, is_causal=is_causal)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        joined = heads[..., 1:].transpose(1, 2).flatten(2)
        merged: Tensor = self.norm(x, self.out(lift(joined, c=self.c)))
        return merged


class ShellFeedForward(nn.Module):
    """Maps to a sphere, applies ReLU, maps again, adds the result to the state and normalizes.

    Shapes: ``[..., space + 1]`` -> ``[..., space + 1]``.
    """

    def __init__(self, space: int, inner: int, *, c: float, dropout: float) -> None:
        super().__init__()
        self.c = c
        self.expand = linear(space, inner)
        self.contract = linear(inner, space)
        self.log_length = nn.Parameter(torch.tensor(INNER_LOG_SCALE))
        self.norm = ShellNorm(c=c, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        unit = F.normalize(self.expand(x), dim=-1, eps=LEAST_LENGTH)
        inner = lift(F.relu(unit * at_least_float32(self.log_length).exp()), c=self.c)
        made: Tensor = self.norm(x, self.contract(inner))
        return made


@dataclass
class ShellConfig(LorentzConfig):
    """The options of all Lorentz architectures; widths count only space coordinates."""


@register_sizes("lorentz_shell", ShellConfig, ("tiny", "iwslt_d64"))
class ShellParts(Parts):
    """Parts whose states have ``width`` space coordinates plus the time."""

    def embedding(self, num_embeddings: int, padding_idx: int) -> LorentzEmbedding:
        options = {"c": self.cfg.curvature, "storage": self.cfg.embedding_storage}
        return LorentzEmbedding(
            num_embeddings, self.side.width + 1, padding_idx=padding_idx, **options
        )

    def positions(self, *, before: Any) -> nn.Module:
        return self.make_positions(ShellPositions, c=self.cfg.curvature)

    def attention(self, role: Role, *, before: Any) -> Attention:
        return self.make_attention(ShellAttention, role, c=self.cfg.curvature)

    def feed_forward(self, *, before: Any) -> nn.Module:
        return self.make_feed_forward(ShellFeedForward, c=self.cfg.curvature)

    def logits(self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any) -> nn.Module:
        return LorentzLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part: Any) -> Space:
        return Space("lorentz", self.cfg.curvature)
