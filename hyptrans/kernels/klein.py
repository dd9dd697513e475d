"""Points read from plain numbers, and their midpoints in Klein coordinates, as HAN has them."""

import math
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from hyptrans.geometry import klein
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.cpu import inlined, sinh_ratio, tanh_ratio
from hyptrans.kernels.heads import (
    cut,
    gradient_of_numbers,
    gradient_of_points,
    made_numbers,
    made_points,
    numbers_backward,
    numbers_forward,
    points_backward,
    points_forward,
    sums_of_points,
)
from hyptrans.kernels.operator import MOST_PROJECTIONS, Case, Draw, Kept, Kernels, Made, Operator

TINY = 1e-30
"""Added to what a ratio divides by; nothing to any other number."""


def polar_heads(numbers: Tensor, heads: int, max_radius: float) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.klein.polar_points` of the numbers of each head.

    Shapes: ``[B, T, P, H n]`` -> ``P`` tensors ``[B, H, T, n]``.
    """
    apply = POLAR_HEADS if numbers.size(2) <= MOST_PROJECTIONS else plain_polar_heads
    made: tuple[Tensor, ...] = apply(at_least_float32(numbers), heads, max_radius)
    return made


def plain_polar_heads(numbers: Tensor, heads: int, max_radius: float) -> tuple[Tensor, ...]:
    """:func:`polar_heads` in plain torch."""
    return klein.polar_points(cut(numbers, heads), max_radius).unbind()


def midpoint_of_sum(total: Tensor) -> Tensor:
    """:func:`hyptrans.geometry.klein.midpoint_of_sum` of heads.

    Shapes: ``[B, H, T, D]`` -> ``[B, H, T, D - 1]``, in memory positions before heads.
    """
    made: Tensor = MIDPOINT(total)
    return made


@inlined
def _polar(squared: float, radius: float, scalars: Any) -> Any:
    """The factor of a direction and the time, of the direction's squared length and a radius.

    Scalars: the largest radius, what is added to a length, 1, a tiny number.
    """
    most, epsilon, one, tiny = scalars[0], scalars[1], scalars[2], scalars[3]
    length = math.sqrt(squared)
    radius *= tanh_ratio(abs(radius) / most + tiny)
    radius *= sinh_ratio(abs(radius) + tiny)
    scale = radius / (length + epsilon)
    length *= scale
    return scale, math.sqrt(length * length + one)


@inlined
def _polar_gradients(
    squared: float, along: float, radius: float, by_time: float, scalars: Any
) -> Any:
    """The factors of gradient and direction in the direction's gradient, and the radius's."""
    most, epsilon, one, tiny = scalars[0], scalars[1], scalars[2], scalars[3]
    length = math.sqrt(squared)
    share = radius / most
    share *= tanh_ratio(abs(share) + tiny)
    reach = share * most
    reach *= sinh_ratio(abs(reach) + tiny)
    inverse = one / (length + epsilon)
    scale = reach * inverse
    by_space = by_time * length * scale / math.sqrt(length * length * scale * scale + one)
    by_scale = along + by_space * length
    by_length = (by_space - by_scale * inverse) * scale
    by_radius = by_scale * inverse * math.sqrt(one + reach * reach)
    along = by_length / length if length > one - one else one - one
    return scale, along, by_radius * (one - share * share)


@inlined
def _midpoint(_: float, time: float, scalars: Any) -> Any:
    """Scalars: the least time of a sum, 1."""
    least, one = scalars[0], scalars[1]
    return one / (one if time < least else time)


@inlined
def _midpoint_gradients(_: float, along: float, time: float, scalars: Any) -> Any:
    """The factors of gradient and space part in the space part's gradient, and the time's."""
    least, one = scalars[0], scalars[1]
    inverse = one / (one if time < least else time)
    by_time = one - one if time < least else -along * inverse * inverse
    return inverse, one - one, by_time


def polar_forward(block: int, pointer: Any) -> None:
    """Directions and radii to points."""
    points_forward(block, pointer, -1, _polar)


def polar_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`polar_forward`."""
    points_backward(block, pointer, -1, _polar_gradients)


def midpoint_forward(block: int, pointer: Any) -> None:
    """Sums of points to the midpoints in Klein coordinates: :func:`numbers_forward`."""
    numbers_forward(block, pointer, _midpoint)


def midpoint_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`midpoint_forward`."""
    numbers_backward(block, pointer, _midpoint_gradients)


def _polar_heads(numbers: Tensor, heads: int, max_radius: float) -> tuple[Made, Kept]:
    # in place of the radius the points have a time
    scalars = (max_radius, klein.DIRECTION_EPSILON, 1.0, TINY)
    return made_points(polar_forward, numbers, heads, scalars, 0)


def _polar_cases(draw: Draw) -> Iterator[Case]:
    yield "polar heads", (draw(*draw.batch, 3, 2 * draw.width), 2, 6 * draw.c)


def _midpoint_cases(draw: Draw) -> Iterator[Case]:
    yield "midpoint of heads", (sums_of_points(draw),)


POLAR_HEADS = Operator(
    "polar heads",
    plain_polar_heads,
    cases=_polar_cases,
    cpu=Kernels(_polar_heads, lambda kept, *grads: gradient_of_points(polar_backward, kept, grads)),
)


MIDPOINT = Operator(
    "midpoint of heads",
    klein.midpoint_of_sum,
    cases=_midpoint_cases,
    cpu=Kernels(
        lambda total: made_numbers(midpoint_forward, total, (klein.LEAST_TIME, 1.0)),
        lambda kept, grad: gradient_of_numbers(midpoint_backward, kept, grad),
    ),
)
