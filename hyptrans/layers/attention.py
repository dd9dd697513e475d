"""Base of multi-head attention in every geometry: heads, masks, weights and decoding state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry.precision import full_precision, matrix_product
from hyptrans.layers.positions import rotate

Map = Literal["qkv", "q", "kv"]
"""The maps of an attention layer, named by their outputs: queries, keys and values."""


@dataclass
class State:
    """State that one part of a decoder keeps between decoding steps."""

    kept: Any = None
    """None before the first step. Attention keeps an object with one row per hypothesis or
    sentence; its ``rows`` is the number of rows, and ``reorder(order)`` returns an object whose row
    ``i`` is row ``order[i]``. The output layer keeps an object that all hypotheses share."""


class Memory(NamedTuple):
    """Keys and values ``[B, H, S, d]`` of the encoder's output or of earlier positions."""

    key: Tensor
    value: Tensor

    @property
    def rows(self) -> int:
        """Return the number of hypotheses or sentences."""
        return self.key.size(0)

    def reorder(self, order: Tensor) -> Memory:
        """Return a memory whose row ``i`` is row ``order[i]`` of this one."""
        return Memory(*(t.index_select(0, order) for t in self))

    def extended(self, key: Tensor, value: Tensor) -> Memory:
        """Return a memory of these positions followed by further ones."""
        pairs = zip(self, (key, value), strict=True)
        return Memory(*(torch.cat(pair, dim=2) for pair in pairs))


class Attention(nn.Module, ABC):
    """Map points to points: project, mix the values, merge the heads, add the residual.

    A variant adds its maps with :meth:`add_maps` and defines how to compute the heads
    (:meth:`map_heads`), mix them (:meth:`mix`) and merge the result (:meth:`merge`). A variant that
    keeps something other than the keys and values of earlier positions or of the memory overrides
    :meth:`mix_next`, :meth:`remember` and :meth:`recall`. Without ``memory`` the layer attends to
    ``x`` itself.

    Shapes: x ``[B, T, D]``, memory ``[B, S, D']``, padding ``[B, S]`` (true at padding)
    -> ``[B, T, D]``; queries, keys and values ``[B, H, T or S, d]``, where ``d`` is ``D / H`` or
    one more. If each group of ``n`` rows of ``x`` has the same memory, pass the memory once per
    group, ``[B / n, S, D']``.

    Args:
        width: coordinates of an input or output point.
        heads: number of heads.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``.
    """

    rotary = False
    """Whether self-attention rotates queries and keys by their positions: what it computes then
    depends on distances between tokens, not on their places. An instance may set it."""
    times = 0
    """Coordinates at the front of queries and keys that rotations leave as they are."""

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width={width} is not divisible by {heads} heads")
        self.width, self.heads, self.causal = width, heads, causal

    def add_maps(self, make: Callable[[int, int], nn.Module], memory_width: int | None) -> None:
        """Register ``qkv``, or ``q`` and ``kv`` for attention to a memory.

        Args:
            make: makes a map from its input width and its number of outputs (1 to 3).
            memory_width: coordinates of a point of the memory; None for self-attention.
        """
        if memory_width is None:
            self.qkv = make(self.width, 3)
        else:
            self.q = make(self.width, 1)
            self.kv = make(memory_width, 2)

    @abstractmethod
    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        """Apply the map of this name to ``x``; return its outputs in the order of its letters."""

    def project(self, x: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries, keys and values of self-attention.

        ``positions`` ``[T]``, or ``[1]`` for all, matter to ``rotary`` attention only; by default
        they count from 0. As padding is on one side, the distances of tokens are those of columns.
        """
        query, key, value = self.map_heads("qkv", x)
        if self.rotary:
            if positions is None:
                positions = torch.arange(x.size(1), device=x.device)
            query, key = rotate(query, key, positions, fixed=self.times)
        return query, key, value

    def query(self, x: Tensor) -> Tensor:
        """Return the queries of cross-attention."""
        return self.map_heads("q", x)[0]

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of cross-attention."""
        key, value = self.map_heads("kv", memory)
        return key, value

    @abstractmethod
    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Mix the values for every query.

        ``allowed`` ``[B, 1, 1, S]`` is true at keys that queries may attend to. With ``is_causal``
        a query sees only its own and earlier positions. :func:`causal_mask` joins the two.
        """

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """Return the weights ``[B, H, T, S]`` that :meth:`mix` gives the values, before dropout."""
        scores = matrix_product(query, key.transpose(-1, -2))
        return masked_softmax(scores, scores.new_ones(()), allowed=allowed, is_causal=is_causal)

    @abstractmethod
    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        """Join the heads ``[B, H, T, D / H]`` and add the residual ``x``."""

    def mix_next(
        self, query: Tensor, key: Tensor, value: Tensor, state: State, padding: Tensor | None
    ) -> Tensor:
        """Add these positions to ``state``, then mix the values of all its positions.

        ``padding`` ``[B, S]`` covers all positions, the earlier ones included.
        """
        earlier = state.kept
        state.kept = Memory(key, value) if earlier is None else earlier.extended(key, value)
        is_causal = self.causal and query.size(2) > 1
        return self.mix(query, *state.kept, allowed=_allowed(padding), is_causal=is_causal)

    def remember(self, memory: Tensor, allowed: Tensor | None) -> Any:
        """Return what to keep of a memory while decoding a batch; ``allowed`` ``[B, 1, 1, S]``."""
        return Memory(*self.keys_and_values(memory))

    def recall(self, query: Tensor, kept: Any, allowed: Tensor | None) -> Tensor:
        """Mix what :meth:`remember` kept; ``query`` comes from :func:`fold_beams`."""
        return self.mix(query, kept.key, kept.value, allowed=allowed, is_causal=False)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        padding: Tensor | None = None,
        state: State | None = None,
    ) -> Tensor:
        """Attend to ``memory`` or ``x``; with ``state``, also to earlier positions, and update it.

        With a ``state``, the padding of self-attention covers the earlier positions too.

        Raises:
            ValueError: ``x`` has several positions and ``state`` already holds earlier ones.
        """
        if memory is not None:
            return self.merge(self._look_at(memory, x, _allowed(padding), state or State()), x)
        if state is None:
            is_causal = self.causal and x.size(1) > 1
            mixed = self.mix(*self.project(x), allowed=_allowed(padding), is_causal=is_causal)
            return self.merge(mixed, x)
        positions = None
        if state.kept is not None:
            if x.size(1) > 1:
                raise ValueError(
                    f"decoding with earlier positions takes one position at a time, got {x.size(1)}"
                )
            if self.rotary:
                positions = torch.full((1,), state.kept.key.size(2), device=x.device)
        return self.merge(self.mix_next(*self.project(x, positions), state, padding), x)

    def look(
        self, x: Tensor, memory: Tensor | None = None, *, padding: Tensor | None = None
    ) -> Tensor:
        """Return the weights of each head, ``[B, H, T, S]``; each position's weights sum to 1."""
        if memory is None:
            query, key, _ = self.project(x)
        else:
            query, (key, _) = self.query(x), self.keys_and_values(memory)
        is_causal = self.causal and memory is None
        with full_precision(query):
            return self.weights(query, key, _allowed(padding), is_causal=is_causal)

    def _look_at(self, memory: Tensor, x: Tensor, allowed: Tensor | None, state: State) -> Tensor:
        """Attend to a memory; ``state`` keeps the memory's keys and values from the first call."""
        query = self.query(x)
        if state.kept is None:
            state.kept = self.remember(memory, allowed)
        mixed = self.recall(fold_beams(query, state.kept.rows), state.kept, allowed)
        return unfold_beams(mixed, x.size(0))


def masked_softmax(
    scores: Tensor, factor: Tensor, *, allowed: Tensor | None, is_causal: bool
) -> Tensor:
    """Return the softmax of ``factor * scores`` over the keys that queries may attend to.

    Shapes: scores ``[B, H, T, S]``, factor ``[H, 1, 1]`` or ``[]``, masks as in
    :meth:`Attention.mix` -> ``[B, H, T, S]``.
    """
    if is_causal:
        allowed = causal_mask(scores.size(-1), allowed, scores.device)
    if allowed is None:
        return (scores * factor).softmax(-1)
    # scaled and masked in one pass: filling the scores would take two more, each many times as long
    barred = scores.new_zeros(allowed.shape).masked_fill_(~allowed, -torch.inf)
    return torch.addcmul(barred, scores, factor).softmax(-1)


def split_heads(z: Tensor, heads: int) -> Tensor:
    """Split rows into equal parts, one per head: ``[B, T, P, H n]`` -> ``[P, B, H, T, n]``."""
    return z.unflatten(-1, (heads, -1)).permute(2, 0, 3, 1, 4)


def heads_of(maps: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Move the heads of each map before its positions: ``[B, T, H, d]`` -> ``[B, H, T, d]``."""
    return tuple(one.transpose(1, 2) for one in maps)


def causal_mask(length: int, allowed: Tensor | None, device: torch.device) -> Tensor:
    """Return a mask: true at a query's own position and at earlier positions that are ``allowed``.

    Shapes: allowed ``[B, 1, 1, T]`` or None -> ``[B, 1, T, T]`` or ``[T, T]``.
    """
    past = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    if allowed is None:
        return past
    # a padding position without any key would have no weights to normalize and give NaN
    return (allowed & past) | torch.eye(length, dtype=torch.bool, device=device)


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    allowed: Tensor | None,
    is_causal: bool,
    scale: float | None = None,
) -> Tensor:
    """Return the mean of the values by torch's fused attention; shapes as in :meth:`Attention.mix`.

    The weights are the softmax of ``scale`` times dot products, by default ``1 / sqrt(d)``.
    """
    if is_causal and allowed is not None:  # torch takes only one of the two
        allowed, is_causal = causal_mask(key.size(2), allowed, key.device), False
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=allowed, is_causal=is_causal, scale=scale
    )


def _allowed(padding: Tensor | None) -> Tensor | None:
    """Return the mask of keys that queries may attend to: ``[B, S]`` -> ``[B, 1, 1, S]``.

    A row that is all padding allows all keys: without a key the weights would be NaN, and so would
    the gradients of all parameters.
    """
    if padding is None:
        return None
    allowed = ~padding[:, None, None, :]
    return allowed | ~allowed.any(-1, keepdim=True)


def fold_beams(query: Tensor, sentences: int) -> Tensor:
    """Lay the queries of all hypotheses of a sentence side by side as if they were positions.

    Shapes: ``[B, H, T, d]`` -> ``[sentences, H, B / sentences * T, d]``.
    """
    if not torch.compiler.is_compiling() and query.size(0) == sentences:
        return query
    return query.unflatten(0, (sentences, -1)).transpose(1, 2).flatten(2, 3)


def unfold_beams(mixed: Tensor, hypotheses: int) -> Tensor:
    """Invert :func:`fold_beams`: ``[B, H, n T, d]`` -> ``[hypotheses, H, T, d]``."""
    if not torch.compiler.is_compiling() and mixed.size(0) == hypotheses:
        return mixed
    beams = hypotheses // mixed.size(0)
    return mixed.unflatten(2, (beams, -1)).transpose(1, 2).flatten(0, 1)
