"""Loops over the numbers of a point, short enough to become vector code.

A compiler that cannot see that arrays do not overlap looks before the loop, for a few arrays only.
"""

from typing import Any

from numba import njit


@njit(inline="always")
def product(x: Any, y: Any) -> Any:
    """The dot product of two rows."""
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit(inline="always")
def products(x: Any, y: Any, c: float) -> Any:
    """``c`` times the dot products of ``x`` with itself, of ``y`` with itself and of both."""
    zero = x.dtype.type(0)
    x2, y2, xy = zero, zero, zero
    for j in range(x.size):
        x2 += x[j] * x[j]
        y2 += y[j] * y[j]
        xy += x[j] * y[j]
    return c * x2, c * y2, c * xy


@njit(inline="always")
def times(row: Any, factor: float, out: Any) -> None:
    """A multiple of a row."""
    for j in range(row.size):
        out[j] = factor * row[j]


@njit(inline="always")
def sum_of_three(a: float, x: Any, b: float, y: Any, c: float, z: Any, out: Any) -> None:
    """``a x + b y + c z``."""
    for j in range(out.size):
        out[j] = a * x[j] + b * y[j] + c * z[j]


@njit(inline="always")
def add_three(a: float, x: Any, b: float, y: Any, c: float, z: Any, out: Any) -> None:
    """:func:`sum_of_three`, added to ``out``."""
    for j in range(out.size):
        out[j] += a * x[j] + b * y[j] + c * z[j]
