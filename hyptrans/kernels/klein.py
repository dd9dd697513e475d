"""Points read from plain numbers, and their midpoints, each in one pass on the CPU.

There are no kernels for CUDA yet: there the formulas of :mod:`hyptrans.geometry.klein` run.
"""

from torch import Tensor

from hyptrans.geometry import klein
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.heads import cut, of_sums, points_of
from hyptrans.kernels.operands import MOST_PROJECTIONS
from hyptrans.kernels.operators import check_places


def polar_heads(numbers: Tensor, heads: int, max_radius: float) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.klein.polar_points` of the numbers of each head.

    Shapes: ``[B, T, P, H n]`` -> ``P`` tensors ``[B, H, T, n]``.
    """
    numbers = at_least_float32(numbers)
    if numbers.size(2) > MOST_PROJECTIONS or chosen(numbers, "klein") != "numba":
        return klein.polar_points(cut(numbers, heads), max_radius).unbind()
    # in place of the radius they have a time
    return points_of(numbers, heads, "polar", (max_radius, klein.DIRECTION_EPSILON), more=0)


def midpoint_of_sum(total: Tensor) -> Tensor:
    """:func:`hyptrans.geometry.klein.midpoint_of_sum` of heads.

    Shapes: ``[B, H, T, D]`` -> ``[B, H, T, D - 1]``, in memory positions before heads.
    """
    if chosen(total, "klein") != "numba":
        return klein.midpoint_of_sum(total)
    return of_sums(total, "midpoint", (klein.LEAST_TIME,))


def midpoints(query: Tensor, keys: Tensor, values: Tensor, places: Tensor, scale: Tensor) -> Tensor:
    """Midpoints of values at places in a table, weighted by ``softmax(scale d(query, key))``.

    Queries and table are read in one pass and where they lie, without a gradient, where
    :func:`hyptrans.kernels.operators.in_one_pass` says so.

    Shapes: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places ``[B, S]``
    (-1 where nobody looks), scale ``[H]`` -> ``[B, H, T, d - 1]``, in memory positions first.
    Source: HAN eq. 2 and 3.

    Raises:
        ValueError: places of another number of rows than the queries'.
    """
    check_places(query, places)
    out = query.new_empty(query.size(0), query.size(2), query.size(1), values.size(-1) - 1)
    scale = scale.to(query.dtype).contiguous()
    launcher("numba").midpoints(query, keys, values, places, scale, (klein.LEAST_TIME,), out)
    return out.transpose(1, 2)
