"""Where rows of heads stand that one tensor has by projections and another by positions."""

from typing import Any

from numba import njit


@njit(inline="always")
def place(row: int, sizes: Any) -> Any:
    """The position of a row of ``[P B H T]``, and where the same one is in ``[B T P H]``."""
    batch, length, projections, heads = sizes[0], sizes[1], sizes[2], sizes[3]
    t, rest = row % length, row // length
    h, rest = rest % heads, rest // heads
    b, p = rest % batch, rest // batch
    return t, ((b * length + t) * projections + p) * heads + h


@njit(inline="always")
def next_place(row: int, t: int, n: int, sizes: Any) -> Any:
    """What :func:`place` gives for the row after this one."""
    if t + 1 < sizes[1]:
        return t + 1, n + sizes[2] * sizes[3]
    return place(row + 1, sizes)
