"""What attention keeps between decoding steps.

Earlier positions stand in tables that are only ever added to; a hypothesis is a list of places in
them. So reordering hypotheses moves the lists alone, and no step copies what came before.
"""

from typing import NamedTuple

import torch
from torch import Tensor

State = dict[str, Tensor]
"""What a layer keeps between decoding steps, made by its first one. The first dimension of the
tensors is that of the hypotheses, but for the tables of :func:`append`."""

FIRST_POSITIONS = 16
"""Positions that fresh tables have room for; full ones are replaced by tables twice as large."""


class Past(NamedTuple):
    """Keys and values by place, and the places ``[B, S]`` of the positions of each hypothesis.

    Shapes: keys, values ``[number of places, H, d]``.
    """

    keys: Tensor
    values: Tensor
    places: Tensor

    def gather(self) -> tuple[Tensor, Tensor]:
        """Keys and values of every hypothesis, ``[B, H, S, d]``."""
        return _gathered(self.keys, self.places), _gathered(self.values, self.places)


def append(state: State, key: Tensor, value: Tensor) -> Past:
    """Add positions to a state; return them with all earlier ones.

    Shapes: key, value ``[B, H, T, d]``.
    """
    earlier = state["places"].size(1) if state else 0
    if not _has_room(state, *key.shape[::2]):
        _make_room(state, key, value)
    tables, length = (state["keys"], state["values"]), key.size(2)
    for table, new in zip(tables, (key, value), strict=True):
        table[earlier : earlier + length, : len(key)] = new.permute(2, 0, 1, 3)
    state["filled"].fill_(earlier + length)
    new_places = _places(range(earlier, earlier + length), len(key), tables[0])
    state["places"] = torch.cat([state["places"], new_places], dim=1)
    return Past(tables[0].flatten(0, 1), tables[1].flatten(0, 1), state["places"])


def reorder(state: State, order: Tensor) -> None:
    """Let hypothesis ``i`` be what ``order[i]`` was."""
    for name in ["places"] if "places" in state else list(state):
        state[name] = state[name].index_select(0, order)


def hypotheses(state: State) -> int:
    """How many a state is of."""
    return len(state["places"] if "places" in state else next(iter(state.values())))


def _has_room(state: State, rows: int, length: int) -> bool:
    if not state:
        return False
    positions, most_rows = state["keys"].shape[:2]
    earlier = state["places"].size(1)
    # a copy of the state that went on by itself has written behind these positions
    is_ours = int(state["filled"]) == earlier
    return is_ours and earlier + length <= positions and rows <= most_rows


def _make_room(state: State, key: Tensor, value: Tensor) -> None:
    """Fresh tables that hold the earlier positions, each hypothesis in a row of its own."""
    rows, length = key.size(0), key.size(2)
    earlier = state["places"].size(1) if state else 0
    positions = max(FIRST_POSITIONS, 2 * (earlier + length))
    for name, new in (("keys", key), ("values", value)):
        table = new.new_empty(positions, rows, new.size(1), new.size(3))
        if earlier:
            old = _gathered(state[name].flatten(0, 1), state["places"])
            table[:earlier] = old.permute(2, 0, 1, 3)
        state[name] = table
    state["places"] = _places(range(earlier), rows, state["keys"])
    state["filled"] = torch.tensor(earlier, device="cpu")


def _places(positions: range, rows: int, table: Tensor) -> Tensor:
    """Where the first ``rows`` rows of a table ``[C, R, H, d]`` stand, ``[rows, positions]``."""
    apart = table.size(1)
    starts = torch.arange(
        positions.start * apart, positions.stop * apart, apart, device=table.device
    )
    return starts + torch.arange(rows, device=table.device).unsqueeze(1)


def _gathered(table: Tensor, places: Tensor) -> Tensor:
    """``[number of places, H, d]`` -> ``[B, H, S, d]``."""
    found = table.flatten(1).index_select(0, places.flatten())
    return found.view(*places.shape, *table.shape[1:]).transpose(1, 2)
