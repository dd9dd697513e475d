"""Attention of Hypformer: linear with focused features, or softmax as in the Lorentz model."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

from hyptrans.geometry.precision import at_least_float32, full_precision
from hyptrans.kernels import linear_attention
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.kernels.linear_attention import Sums, channel_factors, features, step
from hyptrans.layers.attention import Attention, Map, State, heads_of
from hyptrans.layers.curvature import Curvature, Passage, derived
from hyptrans.layers.hypformer import HTC, CentroidNorm, readjust
from hyptrans.layers.lorentz import lorentz_heads, mixed_centroids


class HypformerAttention(Attention):
    """Base of Hypformer's attention layers: HTC maps to heads, merged heads, residual and norm.

    A head's queries, keys and values are space coordinates at the block's curvature.

    Source: Hypformer eq. 14. As in any Transformer, the heads are parts of one map's output (the
    paper's code has heads of full width). Merged heads go through one more HTC.

    Args:
        width: coordinates of an input or output point, time included.
        heads: number of heads.
        head_space: space coordinates of a head.
        curvature: curvature of the result and inside the block.
        input_curvature: curvature of the input.
        memory_width: coordinates of a point of the memory; for cross-attention only.
        memory_curvature: curvature of the memory.
        gain: see :class:`HTC`.
        dropout: see :class:`CentroidNorm`.
        attention_dropout: probability on the space coordinates of the input of the query, key and
            value maps (one mask for the maps of one input), not on the weights.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, a head has no space coordinate, or only
            one of ``memory_width`` and ``memory_curvature`` is given.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_space: int,
        *,
        curvature: Curvature,
        input_curvature: Curvature,
        memory_width: int | None = None,
        memory_curvature: Curvature | None = None,
        gain: float,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        self.attention_dropout = attention_dropout
        self.curvature, self.passage = curvature, Passage(input_curvature, curvature)
        joined = heads * head_space
        if (memory_width is None) != (memory_curvature is None):
            raise ValueError("a memory needs both memory_width and memory_curvature")
        if memory_curvature is not None:
            self.memory_passage = Passage(memory_curvature, curvature)
        self.add_maps(
            lambda in_width, maps: HTC(in_width - 1, joined, gain=gain, projections=maps),
            memory_width,
        )
        self.out = HTC(joined, width - 1, gain=gain)
        self.norm = CentroidNorm(width, dropout=dropout)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        return heads_of(self._mapped(name, x).unbind(2))

    def _mapped(self, name: Map, x: Tensor) -> Tensor:
        """Apply the map of this name to ``x`` -> ``[B, T, maps, H, head_space]``."""
        passage = self.memory_passage if name == "kv" else self.passage
        if self.attention_dropout and self.training:
            dropped = relu_dropout(x[..., 1:], self.attention_dropout)
            x = readjust(dropped, c=passage.before())
        return getattr(self, name)(x, passage()).unflatten(-1, (len(name), self.heads, -1))

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        c = self.curvature()
        joined = heads.transpose(1, 2).flatten(2)  # [B, T, H * head_space]
        return self.norm(x, self.out(readjust(joined, c=c)), self.passage(), c=c)


class LinearAttention(HypformerAttention):
    """Linear attention on space coordinates, in O(T) and with a decoding state of constant size.

    Result: ``Z + psi(V)``, ``Z`` of :mod:`hyptrans.kernels.linear_attention`, one matrix
    ``psi`` per head. In cross-attention ``psi`` reads the queries, as values are the source's.

    Source: Hypformer eq. 15-19.

    Args:
        width: coordinates of an input or output point, time included.
        heads: number of heads, each with ``width / heads`` space coordinates.
        power: exponent that focuses the features (``p`` of eq. 19).
        gain: see :class:`HTC`; ``psi`` starts like the weights there.
        options: see :class:`HypformerAttention`.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or ``power`` is not above 0.
    """

    def __init__(
        self, width: int, heads: int, *, power: float = 2.0, gain: float, **options: Any
    ) -> None:
        if not power > 0:
            raise ValueError(f"power must be above 0, got {power}")
        size = width // heads
        super().__init__(width, heads, size, gain=gain, **options)
        self.power = power
        self.scale = nn.Parameter(torch.zeros(heads, 1, size))
        self.psi = nn.Parameter(torch.empty(heads, size, size))
        bound = gain * math.sqrt(3 / size)  # Xavier's for a square matrix
        nn.init.uniform_(self.psi, -bound, bound)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        with full_precision(query):
            query, key = self._features(query), self._features(key, allowed)
            # a graph serves sentences of any length: it must not depend on the first one's length
            if is_causal and (is_compiling() or query.size(2) <= linear_attention.CHUNK):
                # this needs no sums
                mixed = linear_attention.quadratic(query, key, value, causal=True)
            elif is_causal:
                mixed, _ = linear_attention.causal(query, key, value)
            else:
                mixed = linear_attention.from_sums(query, linear_attention.summarize(key, value))
            return self._with_own(mixed, value)

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """Return the weights of the values, written out."""
        query, key = self._features(query), self._features(key, allowed)
        return linear_attention.weights(query, key, causal=is_causal)

    def mix_next(
        self, query: Tensor, key: Tensor, value: Tensor, state: State, padding: Tensor | None
    ) -> Tensor:
        """Mix the values of these positions and those summed in ``state``; add these to it."""
        # the sums must leave padding out, even if a row has nothing else yet
        allowed = None if padding is None else ~padding[:, None, None, -key.size(2) :]
        with full_precision(query):
            if query.size(2) == 1:
                sums = state.kept or linear_attention.no_sums(query, value)
                known = sums.key_value, sums.key, self._factors(), self.psi, self.power
                mixed, *after = step(query, key, value, *known, allowed)
                state.kept = Sums(*after)
                return mixed
            query, key = self._features(query), self._features(key, allowed)
            mixed, state.kept = linear_attention.causal(query, key, value)
            return self._with_own(mixed, value)

    def remember(self, memory: Tensor, allowed: Tensor | None) -> Sums:
        key, value = self.keys_and_values(memory)
        with full_precision(key):
            return linear_attention.summarize(self._features(key, allowed), value)

    def recall(self, query: Tensor, kept: Sums, allowed: Tensor | None) -> Tensor:
        with full_precision(query):
            mixed = linear_attention.from_sums(self._features(query), kept)
            return self._with_own(mixed, query)

    def _with_own(self, mixed: Tensor, own: Tensor) -> Tensor:
        """Add each position's own term, ``psi(own)``."""
        return mixed + own @ at_least_float32(self.psi)

    def _features(self, numbers: Tensor, allowed: Tensor | None = None) -> Tensor:
        found = features(numbers, self._factors(), self.power)
        return found if allowed is None else found * allowed.transpose(-1, -2)

    def _factors(self) -> Tensor:
        return derived(self.scale, channel_factors)


class SoftmaxAttention(HypformerAttention):
    """HyboNet's attention between Hypformer's HTC maps.

    The weights come from :func:`hyptrans.layers.lorentz.scaled_query`; ``tau`` is learned and
    starts at ``sqrt(width)``.

    Args:
        width: coordinates of an input or output point, time included.
        heads: number of heads; each has ``width / heads`` coordinates, one of them its time.
        options: see :class:`HypformerAttention`.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or a head has no space coordinate.
    """

    times = 1

    def __init__(self, width: int, heads: int, **options: Any) -> None:
        super().__init__(width, heads, width // heads - 1, **options)
        self.tau = nn.Parameter(torch.tensor(width**0.5))

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        # lift in the present layout, then view by head: this copies nothing
        points = readjust(self._mapped(name, x), c=self.curvature())
        return lorentz_heads(points, name, self.tau)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        c = self.curvature()
        points = mixed_centroids(query, key, value, c=c, allowed=allowed, is_causal=is_causal)
        return points[..., 1:]
