"""What the parts of a decoder keep between decoding steps.

Keys and values of earlier positions stand in tables, to which every step adds rows; a hypothesis is
a list of places in these tables. Reordering hypotheses moves the lists alone, and no step copies
earlier keys and values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hyptrans.kernels.few_queries import in_one_pass
from hyptrans.kernels.operator import Operator

FIRST_POSITIONS = 16
"""Room of fresh tables, in positions; full tables are replaced by tables twice as large."""


@dataclass
class State:
    """What one part of a decoder keeps between decoding steps."""

    kept: Any = None
    """None before the first step. Attention keeps an object with one row for each hypothesis or
    sentence: its ``rows`` is their number, and row ``i`` of the result of ``reorder(order)`` is row
    ``order[i]``. The logits keep an object that is the same for all hypotheses."""


@dataclass
class Memory:
    """Keys and values ``[B, H, S, d]``, those that cross-attention made of the encoder's output.

    For a compiler, those of earlier positions, too: its graph is of any number of them.
    """

    key: Tensor
    value: Tensor

    @property
    def rows(self) -> int:
        return self.key.size(0)

    def reorder(self, order: Tensor) -> Memory:
        # the copy keeps the layout of the original: positions before heads
        rows = (t.transpose(1, 2).index_select(0, order) for t in (self.key, self.value))
        return Memory(*(t.transpose(1, 2) for t in rows))

    def gather(self) -> tuple[Tensor, Tensor]:
        return self.key, self.value


class Tables:
    """Keys and values of many positions; each position takes ``rows`` places, one a hypothesis.

    Shapes: keys, values ``[number of places, H, d]``.
    """

    def __init__(self, positions: int, rows: int, key: Tensor, value: Tensor) -> None:
        self.rows, self.positions = rows, positions
        self.filled = 0
        """Positions written so far, by all copies of a state: copies share its tables."""
        self.keys, self.values = (
            t.new_empty(positions * rows, t.size(1), t.size(3)) for t in (key, value)
        )

    def write(self, key: Tensor, value: Tensor) -> Tensor:
        """Add positions ``[B, H, T, d]``; return their places ``[B, T]``."""
        count, length = key.size(0), key.size(2)
        places = []
        for t in range(length):
            first = (self.filled + t) * self.rows
            self.keys[first : first + count] = key[:, :, t]
            self.values[first : first + count] = value[:, :, t]
            places.append(torch.arange(first, first + count, device=key.device))
        self.filled += length
        return torch.stack(places, dim=1)


@dataclass
class Past:
    """Tables, and the places ``[B, S]`` of the positions of each hypothesis."""

    tables: Tables
    places: Tensor

    @property
    def rows(self) -> int:
        return self.places.size(0)

    def reorder(self, order: Tensor) -> Past:
        return Past(self.tables, self.places.index_select(0, order))

    def gather(self) -> tuple[Tensor, Tensor]:
        """Keys and values of every hypothesis, ``[B, H, S, d]``."""
        keys, values = self.tables.keys, self.tables.values
        return _gathered(keys, self.places), _gathered(values, self.places)


def append(state: State, key: Tensor, value: Tensor) -> Past | Memory:
    """Add positions to a state; return them with all earlier ones.

    Shapes: key, value ``[B, H, T, d]``.
    """
    if torch.compiler.is_compiling() or isinstance(state.kept, Memory):
        if state.kept is not None:
            earlier = state.kept.gather()
            key, value = (torch.cat(pair, 2) for pair in zip(earlier, (key, value), strict=True))
        state.kept = Memory(key, value)
        return state.kept
    past: Past | None = state.kept
    if past is None or not _has_room(past, key):
        past = _with_room(past, key, value)
    new_places = past.tables.write(key, value)
    past = Past(past.tables, torch.cat([past.places, new_places], dim=1))
    state.kept = past
    return past


def as_table(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, operator: Operator
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Keys, values and places in the form that operators for attention in one pass take.

    The result is None where these operators cannot be used: where
    :func:`hyptrans.kernels.few_queries.in_one_pass` says no, where there are no positions, and
    where the queries of a row may look at different positions of that row. Keys and values whose
    positions stand before their heads in memory are not copied.

    Shapes: query ``[B, H, T, d]``, key and value ``[B, H, S, d]``, allowed ``[B, 1, 1, S]`` ->
    ``[B S, H, d]`` twice, ``[B, S]`` (-1 where nobody may look).
    """
    rows, length = key.size(0), key.size(2)
    same = query.size(0) == rows and (allowed is None or allowed.shape == (rows, 1, 1, length))
    if not (same and length and in_one_pass(query, operator)):
        return None
    keys, values = (t.transpose(1, 2).flatten(0, 1) for t in (key, value))
    places = torch.arange(rows * length, device=key.device).view(rows, length)
    if allowed is not None:
        places = places.masked_fill(~allowed.view(rows, length), -1)
    return keys, values, places


def _has_room(past: Past, key: Tensor) -> bool:
    tables = past.tables
    return tables.filled + key.size(2) <= tables.positions and key.size(0) <= tables.rows


def _with_room(past: Past | None, key: Tensor, value: Tensor) -> Past:
    """The earlier positions in fresh tables, each hypothesis in a row of its own."""
    rows, earlier = key.size(0), 0 if past is None else past.places.size(1)
    positions = max(FIRST_POSITIONS, 2 * (earlier + key.size(2)))
    tables = Tables(positions, rows, key, value)
    if past is None:
        return Past(tables, torch.empty(rows, 0, dtype=torch.int64, device=key.device))
    return Past(tables, tables.write(*past.gather()))


def _gathered(table: Tensor, places: Tensor) -> Tensor:
    """``[number of places, H, d]`` -> ``[B, H, S, d]``."""
    found = table.flatten(1).index_select(0, places.flatten())
    return found.view(*places.shape, *table.shape[1:]).transpose(1, 2)
