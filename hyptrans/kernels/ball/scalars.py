"""What kernels of the Poincare ball do with the scalars of a row.

The formulas are those of :mod:`hyptrans.geometry.poincare`; ``bound`` is the largest norm in the
unit ball, or the largest slope of a sum, ``epsilon`` the unit of rounding, ``one`` the number in
the dtype of the others.
"""

import math
from typing import Any

from hyptrans.kernels.cpu import inlined, log1p, tanh_ratio


@inlined
def tanh(squared: float, bound: float, epsilon: float, one: float) -> Any:
    """``tanh(a) / a``, clamped, from ``a^2``, and its derivative by ``a^2``."""
    squared += epsilon
    length = math.sqrt(squared)
    ratio = tanh_ratio(length)
    most = bound / length
    slope = one - squared * ratio * ratio if ratio < most else one - one
    ratio = ratio if ratio < most else most
    return ratio, (slope - ratio) / (squared + squared)


@inlined
def artanh(squared: float, bound: float, epsilon: float, one: float) -> Any:
    """``artanh(a) / a``, with ``a`` clamped, from ``a^2``, and its derivative by ``a^2``."""
    squared += epsilon
    length = math.sqrt(squared)
    inside = length if length < bound else bound
    ratio = log1p((inside + inside) / (one - inside)) / (length + length)
    slope = one / (one - squared) if length < bound else one - one
    return ratio, (slope - ratio) / (squared + squared)


@inlined
def by_lengths(
    u2: float,
    v2: float,
    uv: float,
    along: float,
    other: float,
    bound: float,
    epsilon: float,
    one: float,
) -> Any:
    """The factors of :func:`shares`, and the gradients of its three arguments.

    ``along`` and ``other`` are the gradients of the two factors.
    """
    to_x, x_slope = tanh(u2, bound, epsilon, one)
    to_y, y_slope = tanh(v2, bound, epsilon, one)
    x2, y2, xy2 = u2 * to_x * to_x, v2 * to_y * to_y, (uv + uv) * to_x * to_y
    denominator = one + xy2 + x2 * y2
    raw = (x2 + xy2 + y2) / denominator
    sum2 = one - one if raw < one - one else raw
    ratio, slope = artanh(sum2, bound, epsilon, one)
    slope = one - one if raw < one - one else slope
    scale = ratio / denominator
    first, second = one + xy2 + y2, one - x2
    by_first, by_second = along * scale * to_x, other * scale * to_y
    by_x, by_y = along * scale * first, other * scale * second
    by_scale = along * first * to_x + other * second * to_y
    by_sum = by_scale * slope / (denominator * denominator)
    by_denominator = -by_scale * scale / denominator - by_sum * sum2
    by_x2 = by_sum + by_denominator * y2 - by_second
    by_y2 = by_sum + by_denominator * x2 + by_first
    by_xy2 = by_sum + by_denominator + by_first
    by_x += (by_x2 + by_x2) * u2 * to_x + (by_xy2 + by_xy2) * uv * to_y
    by_y += (by_y2 + by_y2) * v2 * to_y + (by_xy2 + by_xy2) * uv * to_x
    by_u2 = by_x2 * to_x * to_x + by_x * x_slope
    by_v2 = by_y2 * to_y * to_y + by_y * y_slope
    return (
        scale * first * to_x,
        scale * second * to_y,
        by_u2,
        by_v2,
        (by_xy2 + by_xy2) * to_x * to_y,
    )


@inlined
def shares(u2: float, v2: float, uv: float, bound: float, epsilon: float, one: float) -> Any:
    """The factors of two tangents in their sum, from ``c`` times their products."""
    nothing = one - one
    found = by_lengths(u2, v2, uv, nothing, nothing, bound, epsilon, one)
    return found[0], found[1]
