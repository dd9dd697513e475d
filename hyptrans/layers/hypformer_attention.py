"""Attention of Hypformer: linear with focused features, or the Lorentz model's softmax."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, half_in_force, without_autocast
from hyptrans.kernels.operators import relu_dropout
from hyptrans.layers import linear_attention
from hyptrans.layers.attention import (
    Attention,
    fold_beams,
    lorentz_mix,
    lorentz_mix_past,
    unfold_beams,
)
from hyptrans.layers.curvature import HTC, Curvature, InputCurvature, readjust
from hyptrans.layers.decoding_state import Past, State
from hyptrans.layers.hypformer import ResidualNorm
from hyptrans.layers.linear_attention import Sums, focus


class HypformerAttention(Attention):
    """What Hypformer's attentions share: HTC maps to the heads, joined heads, residual and norm.

    A head's queries, keys and values are space coordinates at the block's curvature.

    Source: Hypformer eq. 14; heads are cut out of one map as in any Transformer (the paper's code
    has heads of full width). Merged heads go through one more HTC.

    Args:
        width: numbers of a point of the input and the output, time included.
        heads: number of heads.
        head_space: space coordinates of a head.
        curvature: of the result, and inside the block.
        source: curvature of the input.
        memory_width: numbers of a point of the memory; given for cross-attention only.
        memory_source: curvature of the memory.
        gain: see :class:`HTC`.
        dropout: see :class:`ResidualNorm`.
        attention_dropout: probability on the space coordinates of the input of the query, key and
            value maps (one mask for the maps of one input), not on the weights.
        causal: no position sees a later one.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_space: int,
        *,
        curvature: Curvature,
        source: Curvature,
        memory_width: int | None = None,
        memory_source: Curvature | None = None,
        gain: float,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        super().__init__(causal=causal)
        self.heads, self.attention_dropout = heads, attention_dropout
        self.curvature, self.source = curvature, InputCurvature(source)
        joined = heads * head_space
        if memory_width is None or memory_source is None:
            self.qkv = HTC(width - 1, joined, gain=gain, maps=3)
        else:
            self.memory_source = InputCurvature(memory_source)
            self.q = HTC(width - 1, joined, gain=gain)
            self.kv = HTC(memory_width - 1, joined, gain=gain, maps=2)
        self.out = HTC(joined, width - 1, gain=gain)
        self.norm = ResidualNorm(width, dropout=dropout)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self._map(self.qkv, x, self.source(), 3)
        return query, key, value

    def query(self, x: Tensor) -> Tensor:
        return self._map(self.q, x, self.source(), 1)[0]

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key, value = self._map(self.kv, memory, self.memory_source(), 2)
        return key, value

    def _map(self, htc: HTC, x: Tensor, c_in: lorentz.Curvature, maps: int) -> Tensor:
        """``[B, T, width]`` -> ``[maps, B, H, T, head_space]``."""
        if self.attention_dropout and self.training:
            x = readjust(relu_dropout(x[..., 1:], self.attention_dropout), c_in=c_in)
        mapped = htc(x, c_in=c_in, c_out=self.curvature())
        return mapped.unflatten(-1, (maps, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        c_in, c = self.source(), self.curvature()
        joined = heads.transpose(1, 2).flatten(2)  # [B, T, H * head_space]
        return self.norm(x, self.out.from_space(joined, c_in=c), c_in=c_in, c_out=c)


class LinearAttention(HypformerAttention):
    """Linear attention on space coordinates, in O(T) and with a decoding state of constant size.

    ``Z + psi(V)`` with ``Z`` of :mod:`hyptrans.layers.linear_attention` and ``psi`` a matrix a
    head; in cross-attention ``psi`` reads the queries, as the values are of the source.

    Source: Hypformer eq. 15-19.

    Args:
        width: numbers of a point of the input and the output, time included.
        heads: number of heads, each with ``width / heads`` space coordinates.
        power: the focus of the features (``p`` of eq. 19).
        gain: see :class:`HTC`; ``psi`` starts like its weights.
        options: see :class:`HypformerAttention`.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or ``power`` is not above 0.
    """

    def __init__(
        self, width: int, heads: int, *, power: float = 2.0, gain: float, **options: Any
    ) -> None:
        _check_heads(width, heads)
        if not power > 0:
            raise ValueError(f"power must be above 0, got {power}")
        size = width // heads
        super().__init__(width, heads, size, gain=gain, **options)
        self.power = power
        self.scale = nn.Parameter(torch.zeros(heads, 1, size))
        self.psi = nn.Parameter(torch.empty(heads, size, size))
        bound = gain * math.sqrt(3 / size)  # Xavier's for a square matrix
        nn.init.uniform_(self.psi, -bound, bound)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        padding: Tensor | None = None,
        state: State | None = None,
    ) -> Tensor:
        """Attend; with ``state``, to earlier positions too, whose sums it then remembers."""
        allowed = None if padding is None else ~padding[:, None, None, :]
        if memory is None:
            query, key, value = self.project(x)
            local = value
            if state is None:
                mixed = self.mix(query, key, value, allowed=allowed, is_causal=self.causal)
            else:
                mixed = self._continue(query, key, value, allowed, state)
        else:
            query = local = self.query(x)
            sums = self._sums_of(memory, allowed, state)
            with without_autocast(x):
                features = fold_beams(self._features(query), len(sums.key))
                mixed = unfold_beams(linear_attention.read(features, sums), len(x))
        with without_autocast(x):
            heads = mixed + local @ at_least_float32(self.psi)
        return self.merge(heads, x)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Mix the values; ``allowed`` is ``[B, 1, 1, S]``, with ``is_causal`` too."""
        with without_autocast(query):
            query, key = self._features(query), self._features(key, allowed)
            if is_causal:
                return linear_attention.causal(query, key, value)[0]
            return linear_attention.read(query, linear_attention.summarize(key, value))

    def _continue(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, state: State
    ) -> Tensor:
        """Attend to earlier positions, whose sums ``state`` holds, and to these; add their sums."""
        sums = Sums(state["key_value"], state["key"]) if state else None
        with without_autocast(query):
            query, key = self._features(query), self._features(key, allowed)
            if sums is not None and query.size(2) == 1:
                mixed, sums = linear_attention.step(query, key, value, sums)
            else:
                mixed, sums = linear_attention.causal(query, key, value, sums=sums)
        state.update(sums._asdict())
        return mixed

    def _sums_of(self, memory: Tensor, allowed: Tensor | None, state: State | None) -> Sums:
        """Sums over the source, computed once where there is a state."""
        if state:
            return Sums(state["key_value"], state["key"])
        key, value = self.keys_and_values(memory)
        with without_autocast(key):
            sums = linear_attention.summarize(self._features(key, allowed), value)
        if state is not None:
            state.update(sums._asdict())
        return sums

    def _features(self, numbers: Tensor, allowed: Tensor | None = None) -> Tensor:
        features = focus(numbers, self.scale, self.power)
        return features if allowed is None else features * allowed.transpose(-1, -2)


class SoftmaxAttention(HypformerAttention):
    """Attention of the Lorentz model (:func:`lorentz_mix`) between Hypformer's HTC maps.

    ``tau`` is learned and starts at ``sqrt(width)``.

    Args:
        width: numbers of a point of the input and the output, time included.
        heads: number of heads; each has ``width / heads`` numbers, one of them its time.
        half_precision: see :class:`hyptrans.layers.attention.LorentzAttention`.
        options: see :class:`HypformerAttention`.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or a head has no space coordinate.
    """

    def __init__(
        self, width: int, heads: int, *, half_precision: bool = False, **options: Any
    ) -> None:
        _check_heads(width, heads)
        super().__init__(width, heads, width // heads - 1, **options)
        self.half_precision = half_precision
        self.tau = nn.Parameter(torch.tensor(width**0.5))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x)
        return self._query(query), self._lift(key), self._lift(value)

    def query(self, x: Tensor) -> Tensor:
        return self._query(super().query(x))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key, value = super().keys_and_values(memory)
        return self._lift(key), self._lift(value)

    def _query(self, space: Tensor) -> Tensor:
        return lorentz.flip_time(self._lift(space)) * (2 / at_least_float32(self.tau))

    def _lift(self, space: Tensor) -> Tensor:
        return readjust(space, c_in=self.curvature())

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        c, half = self.curvature(), half_in_force(query, self.tau) if self.half_precision else None
        return lorentz_mix(query, key, value, c=c, half=half, allowed=allowed, is_causal=is_causal)

    def mix_past(self, query: Tensor, past: Past) -> Tensor:
        return lorentz_mix_past(query, past, c=self.curvature())

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return super().merge(heads[..., 1:], x)


def _check_heads(width: int, heads: int) -> None:
    if width % heads:
        raise ValueError(f"width={width} is not divisible by {heads} heads")
