"""A control: HyboNet+ that mixes values in a space of another curvature than it compares keys in.

It tells what of attention a curvature acts on: the weights or the centroid. Short of flat space,
the more points differ, the nearer to the origin their centroid is; that of one point is the point.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hyptrans.geometry.precision import half_in_force
from hyptrans.layers.attention import Map
from hyptrans.layers.decoding_state import Memory, Past
from hyptrans.layers.hypformer import readjust
from hyptrans.layers.hypformer_attention import SoftmaxAttention
from hyptrans.layers.lorentz.mix import lorentz_mix, lorentz_mix_past
from hyptrans.models.hybonet_plus import HyboNetPlusConfig
from hyptrans.models.hypformer import HypformerParts
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.parts import Role
from hyptrans.support.options import option


class ValuesAttention(SoftmaxAttention):
    """HyboNet+'s attention with values, and their centroids, of curvature ``-value_c``.

    Args:
        width: see :class:`SoftmaxAttention`, as all others.
        heads: likewise.
        value_c: above 0.
        options: likewise.
    """

    def __init__(self, width: int, heads: int, *, value_c: float, **options: Any) -> None:
        super().__init__(width, heads, **options)
        self.value_c = value_c

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        *others, last = super().map_heads(name, x)
        return *others, readjust(last[..., 1:], c=self.value_c) if "v" in name else last

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        c, half = self.value_c, half_in_force(query, self.tau) if self.half_precision else None
        return lorentz_mix(query, key, value, c=c, half=half, allowed=allowed, is_causal=is_causal)

    def mix_past(self, query: Tensor, past: Past | Memory) -> Tensor:
        return lorentz_mix_past(query, past, c=self.value_c)


@dataclass
class ValuesConfig(HyboNetPlusConfig):
    """Options of HyboNet+, and the curvature of values."""

    value_curvature: float = option(
        1.0, "softmax attention mixes values in a space of minus this (default: 1)", in_formula=True
    )


@register_sizes("hybonet_values", ValuesConfig, ("tiny", "iwslt_d64"))
class ValuesParts(HypformerParts):
    """HyboNet+ but for the values."""

    def make_attention(self, kind: Any, role: Role, **options: Any) -> Any:
        if kind is SoftmaxAttention:
            kind, options = ValuesAttention, {**options, "value_c": self.cfg.value_curvature}
        return super().make_attention(kind, role, **options)
