"""What attention in the Poincare ball does with heads: points of tangents, and their midpoints."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.ball.scalars import artanh
from hyptrans.kernels.cpu import inlined, sinh_ratio
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


def lift_heads(u: Tensor, heads: int, *, c: float = 1.0) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.poincare.lift_tangent` of the heads that tangents are cut into.

    Shapes: ``[B, T, P, H d]`` -> ``P`` tensors ``[B, H, T, d + 1]``.
    """
    apply = LIFT_HEADS if u.size(2) <= MOST_PROJECTIONS else plain_lift_heads
    made: tuple[Tensor, ...] = apply(at_least_float32(u), heads, c)
    return made


def plain_lift_heads(u: Tensor, heads: int, c: float) -> tuple[Tensor, ...]:
    """:func:`lift_heads` in plain torch."""
    return poincare.lift_tangent(cut(u, heads), c=c).unbind()


def centroid_tangent(total: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.centroid_tangent` of heads.

    Shapes: ``[B, H, T, d + 1]`` -> ``[B, H, T, d]``, in memory positions before heads.
    """
    made: Tensor = CENTROID_TANGENT(at_least_float32(total), c)
    return made


def plain_centroid_tangent(total: Tensor, c: float) -> Tensor:
    """:func:`centroid_tangent` in plain torch."""
    return poincare.centroid_tangent(total, c=c)


@inlined
def _lifted(squared: float, _: float, scalars: Any) -> Any:
    """The factor of a tangent and the time of its point, from the tangent's squared length.

    Scalars: ``2 sqrt(c)``, the unit of rounding, 1.
    """
    unit, epsilon, one = scalars[0], scalars[1], scalars[2]
    squared *= unit * unit
    ratio = sinh_ratio(math.sqrt(squared + epsilon))
    return unit * ratio, math.sqrt(squared * ratio * ratio + one)


@inlined
def _lifted_gradients(squared: float, along: float, _: float, by_time: float, scalars: Any) -> Any:
    """The factors of gradient and tangent in the tangent's gradient, and nothing."""
    unit, epsilon, one = scalars[0], scalars[1], scalars[2]
    squared *= unit * unit
    length2, half = squared + epsilon, one / (one + one)
    ratio = sinh_ratio(math.sqrt(length2))
    slope = half * (math.sqrt(one + length2 * ratio * ratio) - ratio) / length2
    time = math.sqrt(squared * ratio * ratio + one)
    by_time *= ratio * (half * ratio + squared * slope) / time
    along = (by_time + unit * along * slope) * unit * unit
    return unit * ratio, along + along, by_time


@inlined
def _centroid(squared: float, time: float, scalars: Any) -> Any:
    """Scalars: ``2 sqrt(c)``, the largest slope, the unit of rounding, the least time, 1."""
    bound, epsilon, least, one = scalars[1], scalars[2], scalars[3], scalars[4]
    time = one if time < least else time
    return artanh(squared / (time * time), bound, epsilon, one)[0] / (scalars[0] * time)


@inlined
def _centroid_gradients(squared: float, along: float, time: float, scalars: Any) -> Any:
    """As :func:`_midpoint_gradients`."""
    unit, bound, epsilon, least, one = scalars[0], scalars[1], scalars[2], scalars[3], scalars[4]
    floored = one if time < least else time
    squared /= floored * floored
    ratio, slope = artanh(squared, bound, epsilon, one)
    along /= unit * floored * floored
    by_time = one - one if time < least else -along * (ratio + (slope + slope) * squared)
    return ratio / (unit * floored), along * (slope + slope) / floored, by_time


def lift_forward(block: int, pointer: Any) -> None:
    """Tangents to points of the hyperboloid of curvature -1."""
    points_forward(block, pointer, 0, _lifted)


def lift_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`lift_forward`."""
    points_backward(block, pointer, 0, _lifted_gradients)


def centroid_forward(block: int, pointer: Any) -> None:
    """Sums of points to the tangents of their midpoints: :func:`numbers_forward`."""
    numbers_forward(block, pointer, _centroid)


def centroid_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`centroid_forward`."""
    numbers_backward(block, pointer, _centroid_gradients)


def _lift_heads(u: Tensor, heads: int, c: float) -> tuple[Made, Kept]:
    scalars = (2 * c**0.5, torch.finfo(u.dtype).eps, 1.0)
    return made_points(lift_forward, u, heads, scalars, 1)


def _centroid_tangent(total: Tensor, c: float) -> tuple[Made, Kept]:
    bound, epsilon = poincare.max_slope(total.dtype), torch.finfo(total.dtype).eps
    scalars = (2 * c**0.5, bound, epsilon, poincare.LEAST_TOTAL, 1.0)
    return made_numbers(centroid_forward, total, scalars)


def _lift_cases(draw: Draw) -> Iterator[Case]:
    yield "lifted heads", (draw.width**-0.5 * draw(*draw.batch, 3, 2 * draw.width), 2, draw.c)


def _centroid_cases(draw: Draw) -> Iterator[Case]:
    total = sums_of_points(draw)
    if total.size(2) > 3 and draw.width >= 2:
        # far out: at distance 4.2, and beyond any clamp; on an axis and in powers of two, as what
        # is rounded there the edge would magnify
        total[0, 0, :3] = 0
        total[0, 0, :3, 0], total[0, 0, :3, 2] = 1, total.new_tensor([1 - 2.0**-11, 1, 1.25])
    yield "mean of heads", (total, draw.c)


LIFT_HEADS = Operator(
    "lifted heads",
    plain_lift_heads,
    cases=_lift_cases,
    cpu=Kernels(_lift_heads, lambda kept, *grads: gradient_of_points(lift_backward, kept, grads)),
)


CENTROID_TANGENT = Operator(
    "mean of heads",
    plain_centroid_tangent,
    cases=_centroid_cases,
    cpu=Kernels(
        _centroid_tangent, lambda kept, grad: gradient_of_numbers(centroid_backward, kept, grad)
    ),
)
