"""Forms on trial: attention by shadow cones, and Lorentz boosts as positions."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, full_precision
from hyptrans.layers.attention import Map, heads_of, masked_softmax
from hyptrans.layers.hypformer import readjust
from hyptrans.layers.hypformer_attention import SoftmaxAttention
from hyptrans.models.hybonet_plus import HyboNetPlusConfig, HyboNetPlusParts
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.support.options import option

LEAST_GAP = 1e-6
"""Least difference of a point's time and its last space coordinate, at curvature -1."""
FIRST_RATE = 0.05
"""Length of a boost between neighbouring positions at the start, in radii of curvature."""


def half_space(x: Tensor, c: Any) -> tuple[Tensor, Tensor]:
    """Return places ``[..., d - 2]`` and heights ``[..., 1]`` of points in the half-space."""
    x = at_least_float32(x) * torch.as_tensor(c).sqrt()
    gap = (x[..., :1] - x[..., -1:]).clamp_min(LEAST_GAP)
    return x[..., 1:-1] / gap, 1 / gap


class ConeAttention(SoftmaxAttention):
    """Softmax of ``-gamma h``, ``h`` the height of the lowest common ancestor by umbral cones.

    ``h(u, v) = max(u_d, v_d, |u_x - v_x| / s + (u_d + v_d) / 2)`` in the upper half-space;
    ``gamma`` and the slope ``s`` are learned per head and start at 1.
    Source: Tseng et al., arXiv 2306.00392, umbral cones in the half-space, with ``s = 2 sinh(r)``.
    """

    def __init__(self, width: int, heads: int, **options: Any) -> None:
        super().__init__(width, heads, **options)
        del self.tau
        self.log_gamma = nn.Parameter(torch.zeros(heads, 1, 1))
        self.log_slope = nn.Parameter(torch.zeros(heads, 1, 1))

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        return heads_of(readjust(self._mapped(name, x), c=self.curvature()).unbind(2))

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        (at, height), (other, other_height) = (
            half_space(x, self.curvature()) for x in (query, key)
        )
        other_height = other_height.transpose(-1, -2)
        between = (at[..., :, None, :] - other[..., None, :, :]).square().sum(-1)
        # the gradient of a root at 0 is infinite
        between = (between + LEAST_GAP**2).sqrt() / self.log_slope.exp()
        above = torch.maximum(height, other_height)
        top = torch.maximum(above, between + (height + other_height) / 2)
        return masked_softmax(-top, self.log_gamma.exp(), allowed=allowed, is_causal=is_causal)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        with full_precision(query):
            weights = self.weights(query, key, allowed, is_causal=is_causal)
            return lorentz.centroid(value, weights, c=self.curvature())[..., 1:]


class BoostAttention(SoftmaxAttention):
    """HyboNet's attention whose queries and keys at position ``m`` are boosted by ``m rate``.

    A boost mixes the time and the first space coordinate and keeps points on the hyperboloid, so
    scores depend on differences of positions. Rates are learned, one per head.
    Source: arXiv 2509.05218, on points and without its decay, which the distance itself brings.
    """

    def __init__(self, width: int, heads: int, **options: Any) -> None:
        super().__init__(width, heads, **options)
        self.rates = nn.Parameter(torch.full((heads, 1, 1), FIRST_RATE))

    def project(self, x: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.map_heads("qkv", x)
        if self.rotary:
            if positions is None:
                positions = torch.arange(x.size(1), device=x.device)
            lengths = self.rates * positions[:, None]
            # a scaled query has the opposite sign of its time: its boost is the inverse one
            query, key = boost(query, -lengths), boost(key, lengths)
        return query, key, value


def boost(x: Tensor, lengths: Tensor) -> Tensor:
    """Shapes: ``[B, H, T, d]``, lengths ``[H, T or 1, 1]`` -> ``[B, H, T, d]``."""
    time, first, rest = x[..., :1], x[..., 1:2], x[..., 2:]
    cosh, sinh = lengths.cosh(), lengths.sinh()
    return torch.cat([cosh * time + sinh * first, sinh * time + cosh * first, rest], dim=-1)


@dataclass
class ConesConfig(HyboNetPlusConfig):
    """Options of ``hybonet_plus``."""


@register_sizes("plus_cones", ConesConfig, ("tiny", "iwslt_d64"))
class PlusConesParts(HyboNetPlusParts):
    """``hybonet_plus`` with attention by cones in encoder, decoder and between them."""

    def attention(self, role: Any, *, before: Any) -> Any:
        memory: Any = role.memory
        options = {**self._block_options(before), "memory_curvature": memory and memory.curvature}
        return self.make_attention(ConeAttention, role, **options)


@dataclass
class BoostsConfig(HyboNetPlusConfig):
    """Options of ``hybonet_plus``; positions are boosts."""

    rotary_positions: bool = option(True, "positions are boosts", in_formula=True)


@register_sizes("plus_boosts", BoostsConfig, ("tiny", "iwslt_d64"))
class PlusBoostsParts(HyboNetPlusParts):
    """``hybonet_plus`` whose only positions are boosts of queries and keys."""

    def attention(self, role: Any, *, before: Any) -> Any:
        memory: Any = role.memory
        options = {**self._block_options(before), "memory_curvature": memory and memory.curvature}
        return self.make_attention(BoostAttention, role, **options)


__all__ = ["BoostAttention", "ConeAttention"]
