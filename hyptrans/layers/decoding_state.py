"""What the parts of a decoder keep between decoding steps.

Earlier positions stand in tables that are only ever added to; a hypothesis is a list of places in
them. So reordering hypotheses moves the lists alone, and no step copies what came before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hyptrans.kernels.few_queries import in_one_pass
from hyptrans.kernels.operator import Operator

FIRST_POSITIONS = 16
"""Positions that fresh tables have room for; full ones are replaced by tables twice as large."""


@dataclass
class State:
    """What one part keeps between decoding steps: nothing before its first."""

    kept: Any = None
    """Of an attention something with a row of every hypothesis or sentence: ``rows`` says how many,
    and row ``i`` of what ``reorder(order)`` gives is row ``order[i]``. A part that knows of no
    hypotheses keeps whatever it likes."""


@dataclass
class Memory:
    """Keys and values ``[B, H, S, d]`` of what cross-attention looks at."""

    key: Tensor
    value: Tensor

    @property
    def rows(self) -> int:
        return len(self.key)

    def reorder(self, order: Tensor) -> Memory:
        # positions stay before heads in memory, as they were made
        rows = (t.transpose(1, 2).index_select(0, order) for t in (self.key, self.value))
        return Memory(*(t.transpose(1, 2) for t in rows))


class Tables:
    """Keys and values of positions, every position a slab of ``rows`` places.

    Shapes: keys, values ``[number of places, H, d]``.
    """

    def __init__(self, positions: int, rows: int, key: Tensor, value: Tensor) -> None:
        self.rows, self.positions = rows, positions
        self.filled = 0
        """Positions written so far, by all copies of a state, which share its tables."""
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
        return len(self.places)

    def reorder(self, order: Tensor) -> Past:
        return Past(self.tables, self.places.index_select(0, order))

    def gather(self) -> tuple[Tensor, Tensor]:
        """Keys and values of every hypothesis, ``[B, H, S, d]``."""
        keys, values = self.tables.keys, self.tables.values
        return _gathered(keys, self.places), _gathered(values, self.places)


def append(state: State, key: Tensor, value: Tensor) -> Past:
    """Add positions to a state; return them with all earlier ones.

    Shapes: key, value ``[B, H, T, d]``.
    """
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
    """Keys, values and places, as operators that attend in one pass take them.

    None where that is not possible: :func:`hyptrans.kernels.few_queries.in_one_pass` says no, there
    are no positions, or the queries of a row may not all look at the same ones of that row. Nothing
    is copied where positions stand before heads in memory.

    Shapes: query ``[B, H, T, d]``, key and value ``[B, H, S, d]``, allowed ``[B, 1, 1, S]`` ->
    ``[B S, H, d]`` twice, ``[B, S]`` (-1 where nobody may look).
    """
    rows, length = key.size(0), key.size(2)
    same = len(query) == rows and (allowed is None or allowed.shape == (rows, 1, 1, length))
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
