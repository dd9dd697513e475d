"""Multi-head attention of every geometry: heads, masks, weights and decoding state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from hyptrans.geometry.precision import full_precision, matrix_product

Map = Literal["qkv", "q", "kv"]
"""The maps of an attention by what they make: queries, keys and values."""


@dataclass
class State:
    """What one part of a decoder keeps between decoding steps."""

    kept: Any = None
    """None before the first step. Attention keeps an object with one row for each hypothesis or
    sentence: its ``rows`` is their number, and row ``i`` of the result of ``reorder(order)`` is row
    ``order[i]``. The logits keep an object that is the same for all hypotheses."""


class Memory(NamedTuple):
    """Keys and values ``[B, H, S, d]``: of the encoder's output, or of earlier positions."""

    key: Tensor
    value: Tensor

    @property
    def rows(self) -> int:
        """How many hypotheses or sentences."""
        return self.key.size(0)

    def reorder(self, order: Tensor) -> Memory:
        """Row ``i`` of the result is row ``order[i]``."""
        return Memory(*(t.index_select(0, order) for t in self))

    def extended(self, key: Tensor, value: Tensor) -> Memory:
        """These positions, and further ones behind them."""
        pairs = zip(self, (key, value), strict=True)
        return Memory(*(torch.cat(pair, dim=2) for pair in pairs))


class Attention(nn.Module, ABC):
    """Points in, points out: project, mix the values, merge the heads, add the residual.

    A variant adds its maps (:meth:`add_maps`) and says what heads they make (:meth:`map_heads`),
    what mixes these (:meth:`mix`) and what becomes of the result (:meth:`merge`). A variant that
    keeps something else than keys and values, of earlier positions or of the memory, overrides
    :meth:`mix_next`, :meth:`remember` and :meth:`recall`. Without ``memory`` it attends to ``x``
    itself.

    Shapes: x ``[B, T, D]``, memory ``[B, S, D']``, padding ``[B, S]`` (true at padding)
    -> ``[B, T, D]``; queries, keys and values ``[B, H, T or S, d]``, ``d`` being ``D / H`` or one
    more. Where every ``n`` rows of ``x`` have the same memory, it may be given once for them,
    ``[B / n, S, D']``.

    Args:
        width: numbers of a point of the input and the output.
        heads: number of heads.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``.
    """

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width={width} is not divisible by {heads} heads")
        self.width, self.heads, self.causal = width, heads, causal

    def add_maps(self, make: Callable[[int, int], nn.Module], memory_width: int | None) -> None:
        """Register ``qkv``, or ``q`` and ``kv`` where a memory is attended to.

        Args:
            make: gives the map from an input of some width to so many of queries, keys and values.
            memory_width: numbers of a point of the memory; None for self-attention.
        """
        if memory_width is None:
            self.qkv = make(self.width, 3)
        else:
            self.q = make(self.width, 1)
            self.kv = make(memory_width, 2)

    @abstractmethod
    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        """What the map of that name makes of ``x``, in the order of its letters."""

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""
        query, key, value = self.map_heads("qkv", x)
        return query, key, value

    def query(self, x: Tensor) -> Tensor:
        """Queries of cross-attention."""
        return self.map_heads("q", x)[0]

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of cross-attention."""
        key, value = self.map_heads("kv", memory)
        return key, value

    @abstractmethod
    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Mix the values for every query.

        ``allowed`` ``[B, 1, 1, S]`` is true at keys that may be looked at, ``is_causal`` says that
        a query sees its own and earlier positions only; ``causal_mask`` joins the two.
        """

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """What :meth:`mix` weighs the values with, ``[B, H, T, S]``, without dropout."""
        scores = matrix_product(query, key.transpose(-1, -2))
        return masked_softmax(scores, scores.new_ones(()), allowed=allowed, is_causal=is_causal)

    @abstractmethod
    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        """Join the heads ``[B, H, T, D / H]`` and add the residual ``x``."""

    def mix_next(
        self, query: Tensor, key: Tensor, value: Tensor, state: State, padding: Tensor | None
    ) -> Tensor:
        """Add these positions to ``state``; mix the values of all that it then has.

        ``padding`` ``[B, S]`` is of all positions, the earlier ones included.
        """
        allowed = None if padding is None else _allowed(padding)
        earlier = state.kept
        state.kept = Memory(key, value) if earlier is None else earlier.extended(key, value)
        is_causal = self.causal and query.size(2) > 1
        return self.mix(query, *state.kept, allowed=allowed, is_causal=is_causal)

    def remember(self, memory: Tensor, allowed: Tensor | None) -> Any:
        """What is kept of a memory while a batch is decoded; ``allowed`` ``[B, 1, 1, S]``."""
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
        """Attend; with ``state``, to earlier positions too, which it then remembers.

        With a ``state``, the padding of self-attention is of the earlier positions too.

        Raises:
            ValueError: more than one position at a time with a ``state`` that holds earlier ones.
        """
        allowed = None if padding is None else _allowed(padding)
        if memory is not None:
            return self.merge(self._look_at(memory, x, allowed, state), x)
        query, key, value = self.project(x)
        if state is not None:
            if state.kept is not None and x.size(1) > 1:
                raise ValueError(
                    f"decoding with earlier positions takes one position at a time, got {x.size(1)}"
                )
            return self.merge(self.mix_next(query, key, value, state, padding), x)
        is_causal = self.causal and x.size(1) > 1
        return self.merge(self.mix(query, key, value, allowed=allowed, is_causal=is_causal), x)

    def look(
        self, x: Tensor, memory: Tensor | None = None, *, padding: Tensor | None = None
    ) -> Tensor:
        """The weights of each head, ``[B, H, T, S]``; those of a position sum to 1."""
        allowed = None if padding is None else _allowed(padding)
        if memory is None:
            query, key, _ = self.project(x)
        else:
            query, (key, _) = self.query(x), self.keys_and_values(memory)
        with full_precision(query):
            return self.weights(query, key, allowed, is_causal=self.causal and memory is None)

    def _look_at(
        self, memory: Tensor, x: Tensor, allowed: Tensor | None, state: State | None
    ) -> Tensor:
        """Attend to a memory; a ``state`` keeps its keys and values from the first call on."""
        query = self.query(x)
        kept = None if state is None else state.kept
        if kept is None:
            kept = self.remember(memory, allowed)
        if state is not None:
            state.kept = kept
        mixed = self.recall(fold_beams(query, kept.rows), kept, allowed)
        return unfold_beams(mixed, x.size(0))


def masked_softmax(
    scores: Tensor, factor: Tensor, *, allowed: Tensor | None, is_causal: bool
) -> Tensor:
    """Softmax of ``factor scores`` over the keys that may be looked at.

    Shapes: scores ``[B, H, T, S]``, factor ``[H, 1, 1]`` or ``[]``, masks as in
    :meth:`Attention.mix` -> ``[B, H, T, S]``.
    """
    if is_causal:
        allowed = causal_mask(scores.size(-1), allowed, scores.device)
    if allowed is None:
        return (scores * factor).softmax(-1)
    # added as they are scaled: scores that are filled in take two passes more, each many times as
    # long
    barred = scores.new_zeros(allowed.shape).masked_fill_(~allowed, -torch.inf)
    return torch.addcmul(barred, scores, factor).softmax(-1)


def causal_mask(length: int, allowed: Tensor | None, device: torch.device) -> Tensor:
    """True where a query may look: at itself, and at earlier positions that are ``allowed``.

    Shapes: allowed ``[B, 1, 1, T]`` or None -> ``[B, 1, T, T]`` or ``[T, T]``.
    """
    past = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    if allowed is None:
        return past
    # a padding position that sees nothing would have no weights to normalize, hence NaN
    return (allowed & past) | torch.eye(length, dtype=torch.bool, device=device)


def one_mask(key: Tensor, allowed: Tensor | None, is_causal: bool) -> tuple[Tensor | None, bool]:
    """``attn_mask`` and ``is_causal`` for torch's fused attention, which takes only one of the two.

    Shapes: key ``[B, H, T, d]``, allowed ``[B, 1, 1, T]``.
    """
    if is_causal and allowed is not None:
        return causal_mask(key.size(2), allowed, key.device), False
    return allowed, is_causal


def _allowed(padding: Tensor) -> Tensor:
    """The keys that may be looked at: ``[B, S]`` -> ``[B, 1, 1, S]``.

    In a row of padding alone all keys may be: without a key the weights, and with them the
    gradients of all parameters, would be NaN.
    """
    allowed = ~padding[:, None, None, :]
    return allowed | ~allowed.any(-1, keepdim=True)


def fold_beams(query: Tensor, sentences: int) -> Tensor:
    """Put the queries of all hypotheses of a sentence side by side, as if they were its positions.

    Shapes: ``[B, H, T, d]`` -> ``[sentences, H, B / sentences * T, d]``.
    """
    if not torch.compiler.is_compiling() and query.size(0) == sentences:
        return query
    return query.unflatten(0, (sentences, -1)).transpose(1, 2).flatten(2, 3)


def unfold_beams(mixed: Tensor, hypotheses: int) -> Tensor:
    """Inverse of :func:`fold_beams`: ``[B, H, n T, d]`` -> ``[hypotheses, H, T, d]``."""
    if not torch.compiler.is_compiling() and mixed.size(0) == hypotheses:
        return mixed
    beams = hypotheses // mixed.size(0)
    return mixed.unflatten(2, (beams, -1)).transpose(1, 2).flatten(0, 1)
