"""HAN's points, their distances, and their midpoints in Klein coordinates.

The Klein model is the ball of the vectors ``x_s / x_t``; its geodesics are straight, and its
Einstein midpoint is a weighted mean. Here points lie on the hyperboloid of curvature -1, time
first; only midpoints are Klein coordinates. Inputs in half precision give float32 results.

Source: the formulas of HAN (Gulcehre et al. 2018).
"""

import math
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, matrix_product, with_gradient

DIRECTION_EPSILON = 1e-6
"""Added to a vector's length before dividing by it, so that the zero vector has no direction."""
TINY = 1e-30
"""Negligible beside ``sinh(d)^2`` of every ``d`` but 0; the least nonzero square is 4e-16."""
LEAST_TIME = 1e-20
"""A weighted sum with a smaller time counts as one whose weights dropout has all removed. Times of
points are at least 1, and 1e-20 leaves room for gradients and for loss scaling."""


def polar_points(numbers: Tensor, max_radius: float) -> Tensor:
    """Return points from numbers: a direction and, last, a radius.

    The point is ``(cosh r, sinh r v / |v|)``, its radius bounded smoothly to ``R tanh(r / R)``;
    a negative radius goes the opposite way. A zero vector gives the origin.

    Shapes: ``[..., n + 1]`` -> ``[..., n + 1]``.
    Range: any numbers; ``max_radius`` up to 20, so that squares of products are finite in float32.
    Directions shorter than 1e-3 give smaller radii, because 1e-6 is added to the length.
    Source: HAN sec. 4.1, pseudo-polar coordinates.
    """
    return with_gradient(_PolarPoints, at_least_float32(numbers), max_radius)


class _PolarPoints(torch.autograd.Function):
    """:func:`polar_points`, whose gradient takes half of autograd's passes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(numbers: Tensor, max_radius: float) -> Tensor:
        vector, radius = numbers[..., :-1], numbers[..., -1:]
        length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
        reach = torch.sinh(max_radius * torch.tanh(radius / max_radius))
        return _scaled_point(vector, length, reach / (length + DIRECTION_EPSILON))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.max_radius = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        numbers, points = ctx.saved_tensors
        vector, radius = numbers[..., :-1], numbers[..., -1:]
        length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
        share = torch.tanh(radius / ctx.max_radius)
        inverse = 1 / (length + DIRECTION_EPSILON)
        scale = torch.sinh(ctx.max_radius * share) * inverse
        # the time is a function of the space part's length, which is length * scale
        by_space = grad[..., :1] * length * scale / points[..., :1]
        by_scale = (grad[..., 1:] * vector).sum(-1, keepdim=True) + by_space * length
        by_length = (by_space - by_scale * inverse) * scale
        by_reach = by_scale * inverse * torch.cosh(ctx.max_radius * share)
        along = by_length / length.masked_fill(length == 0, 1)
        # as laid out in memory as the numbers, whose heads are a view: joining them copies nothing
        found = numbers * along
        found[..., :-1] += scale * grad[..., 1:]
        found[..., -1:] = by_reach * (1 - share.square())
        return found, None


def cartesian_points(numbers: Tensor, max_radius: float) -> Tensor:
    """Return the point with given space coordinates, moved in to the largest radius if needed.

    Shapes: ``[..., n]`` -> ``[..., n + 1]``. Range: that of :func:`polar_points`.
    Source: HAN sec. 5.5, without pseudo-polar coordinates.
    """
    vector = at_least_float32(numbers)
    length = vector.norm(dim=-1, keepdim=True)
    bound = math.sinh(max_radius)
    return _scaled_point(vector, length, bound / length.clamp_min(bound))


def _scaled_point(vector: Tensor, length: Tensor, scale: Tensor) -> Tensor:
    """Return the point above ``scale * vector``; ``length`` is the length of ``vector``."""
    return torch.cat([lorentz.time_above((length * scale).square()), vector * scale], dim=-1)


class Arcosh(torch.autograd.Function):
    """``arcosh(x)``, and 0 with a zero gradient where rounding took ``x`` below 1.

    The gradient ``1 / sinh(d)`` needs only the result ``d``. It is bounded, at 2,048 in float32,
    because the least float above 1 is one rounding above it.

    Source: ``arcosh(1 + u) = log1p(u + sqrt(u (u + 2)))``.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        u = (x - 1).clamp(min=0)
        # not in place: torch.compile of torch 2.11 loses the gradient of such a result
        return (u + 2).mul_(u).sqrt_().add_(u).log1p()

    @staticmethod
    def setup_context(ctx: Any, _: Any, output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (d,) = ctx.saved_tensors
        sinh = d.sinh()
        # 1 / sinh, and 0 at 0, where a second derivative would be NaN; a mask would be slower
        return grad * (sinh / (sinh.square() + TINY))


def distances(query: Tensor, key: Tensor) -> Tensor:
    """Return the distances between all queries and all keys, by one batched matrix product.

    Shapes: query ``[..., T, D]``, key ``[..., S, D]`` -> ``[..., T, S]``.
    Range: the error of a product at radius ``r`` is one rounding of ``cosh(r)^2``, which hides
    distances below the square root of twice that error: 0.04 at radius 5 in float32.
    """
    signs = lorentz.time_signs(query, -1.0)
    return with_gradient(Arcosh, matrix_product(query * signs, key.transpose(-2, -1)))


def midpoint(weights: Tensor, value: Tensor) -> Tensor:
    """Return the Einstein midpoint of points, in Klein coordinates.

    With ``v = x_s / x_t`` the Lorentz factor ``1 / sqrt(1 - |v|^2)`` is ``x_t``, so the midpoint
    ``sum a_j x_jt v_j / sum a_j x_jt`` is the space part of one weighted sum of points, divided by
    its time. The scale of a query's weights is free; without any weight the midpoint is the origin.

    Shapes: weights ``[..., T, S]``, value ``[..., S, D]`` -> ``[..., T, D - 1]``.
    Range: weights of any scale above ``1e-20``; midpoints are shorter than 1, but for rounding.
    Source: HAN eq. 3.
    """
    return midpoint_of_sum(matrix_product(weights, value))


def midpoint_of_sum(total: Tensor) -> Tensor:
    """Return the :func:`midpoint` of points from their weighted sum.

    Shapes: ``[..., D]`` -> ``[..., D - 1]``. Range: that of :func:`midpoint`. Source: HAN eq. 3.
    """
    total = at_least_float32(total)
    time = total[..., :1]
    # divide by one, not by the smallest time, whose inverse would blow up the gradient
    return total[..., 1:] / time.masked_fill(time < LEAST_TIME, 1.0)
