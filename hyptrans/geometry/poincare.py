"""The Poincare ball model of hyperbolic space.

A point of curvature ``-c`` (``c > 0``) is a vector ``x`` with ``c |x|^2 < 1``. The last dimension
of every tensor is the coordinate, all others are batch dimensions. ``exp_o`` and ``log_o`` are
geoopt's: the point at tangent ``u`` is ``2 |u|`` away from the origin. Inputs in half precision
give float32 results.

A layer may keep a point as its tangent vector ``log_o(x)``. Matrices, activations and norms act on
tangents, and :func:`add_tangents` is Mobius addition of tangents, so that layers never compute an
``exp_o`` only to undo it with ``log_o``.
"""

import math
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, matrix_product, with_gradient

MARGINS = {torch.float32: 4e-3, torch.float64: 1e-5}
"""Least distance of a point from the boundary of the unit ball, as in geoopt. In float32, one
rounding at ``|x| = 0.996`` moves a distance by 1e-5."""
LEAST_TOTAL = 1e-12
"""A sum of lifted points with a smaller time counts as one without weights, whose midpoint is the
origin. If dropout removes all softmax weights, the midpoint would be 0 / 0."""

SERIES, SERIES_BELOW = 7, 1e-2
"""Terms of a slope's series near 0; the next term is below one rounding of float64."""


def max_norm(dtype: torch.dtype, *, c: float = 1.0) -> float:
    """Return the largest norm of a point, which :func:`clamp` enforces.

    Range: 0.996 of the ball's radius in float32 and 0.99999 in float64, at distances of
    ``6.2 / sqrt(c)`` and ``12.2 / sqrt(c)`` from the origin.
    """
    return (1 - MARGINS[dtype]) / c**0.5


def max_slope(dtype: torch.dtype) -> float:
    """Return the slope ``|s| / t`` of a lifted point at :func:`max_norm`, the largest of midpoints.

    It is ``tanh`` of the point's distance from the origin, ``2 artanh(1 - margin)``. Range: (0, 1).
    """
    return math.tanh(2 * math.atanh(max_norm(dtype)))


def clamp(x: Tensor, *, c: float = 1.0) -> Tensor:
    """Move points beyond :func:`max_norm` back to it along their rays.

    Shapes: ``[..., D]`` -> ``[..., D]``. Range: any vector.
    """
    x = at_least_float32(x)
    norm = x.norm(dim=-1, keepdim=True)
    bound = max_norm(x.dtype, c=c)
    return torch.where(norm > bound, x * (bound / norm.clamp_min(bound)), x)


def exp_origin(u: Tensor, *, c: float = 1.0) -> Tensor:
    """Apply the exponential map at the origin, ``tanh(sqrt(c) |u|) u / (sqrt(c) |u|)``, clamped.

    Shapes: ``[..., D]`` -> ``[..., D]``. The zero vector gives the origin, with gradient one.
    Range: any vector; those longer than ``3.1 / sqrt(c)`` in float32 (6.1 in float64) are
    clamped. Source: HVT eq. 9, without its factor 1/2 in ``tanh``, as in geoopt.
    """
    u = at_least_float32(u)
    return u * _tanh_ratio(c * _square(u))


def log_origin(x: Tensor, *, c: float = 1.0) -> Tensor:
    """Invert :func:`exp_origin`: ``artanh(sqrt(c) |x|) x / (sqrt(c) |x|)``.

    Shapes: ``[..., D]`` -> ``[..., D]``. The origin gives the zero vector, with gradient one.
    Range: points within :func:`max_norm`; others count as lying on it.
    Source: HVT eq. 8, without its factor 2, as in geoopt.
    """
    x = at_least_float32(x)
    return x * _artanh_ratio(c * _square(x))


def add_tangents(u: Tensor, v: Tensor, *, c: float = 1.0) -> Tensor:
    """Add two points given by their tangents, by Mobius addition: ``log_o(exp_o(u) (+) exp_o(v))``.

    All but two products of a scalar and a vector are operations on one scalar per point.

    Shapes: u, v ``[..., D]``, broadcast together -> ``[..., D]``.
    Range: tangents and sums within those of :func:`max_norm`; others count as lying on it.
    Source: HVT eq. 3, 8 and 9.
    """
    u, v = at_least_float32(u), at_least_float32(v)
    u2, v2, uv = c * _square(u), c * _square(v), c * (u * v).sum(-1, keepdim=True)
    to_x, to_y = _tanh_ratio(u2), _tanh_ratio(v2)
    x2, y2, xy2 = u2 * to_x.square(), v2 * to_y.square(), 2 * uv * to_x * to_y
    denominator = 1 + xy2 + x2 * y2
    # |x (+) y|^2, which rounding may take below zero where y is nearly -x
    sum2 = ((x2 + xy2 + y2) / denominator).clamp_min(0)
    scale = _artanh_ratio(sum2) / denominator
    return torch.addcmul((scale * (1 + xy2 + y2) * to_x) * u, scale * (1 - x2) * to_y, v)


def mobius_add(x: Tensor, y: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the Mobius sum ``x (+) y``.

    Shapes: x, y ``[..., D]``, broadcast together -> ``[..., D]``. Range: that of
    :func:`add_tangents`. Source: HVT eq. 3.
    """
    return exp_origin(add_tangents(log_origin(x, c=c), log_origin(y, c=c), c=c), c=c)


def to_lorentz(x: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the same point in the Lorentz model, of which the ball is a stereographic projection.

    Shapes: ``[..., D]`` -> ``[..., D + 1]``.
    Range: points within :func:`max_norm`; infinite or NaN on the border, NaN outside of the ball.
    """
    x = at_least_float32(x)
    return lorentz.lift(2 * x / _gap(_square(x), c), c=c)


def from_lorentz(x: Tensor, *, c: float = 1.0) -> Tensor:
    """Invert :func:`to_lorentz`, and clamp.

    Shapes: ``[..., D + 1]`` -> ``[..., D]``. Range: any point; those far out are clamped.
    """
    x = at_least_float32(x)
    return clamp(x[..., 1:] / (1 + c**0.5 * x[..., :1]), c=c)


def lift_tangent(u: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the point of tangent ``u`` on the unit hyperboloid, where products are cheap.

    Shapes: ``[..., D]`` -> ``[..., D + 1]``; times are ``cosh(2 sqrt(c) |u|)``.
    Range: vectors up to a length of ``22 / sqrt(c)`` in float32 (177 in float64); beyond, times are
    infinite.
    """
    u = at_least_float32(u)
    squared = 4 * c * _square(u)
    length = _length(squared)
    ratio = torch.sinh(length) / length
    time = lorentz.time_above(squared * ratio.square())
    return torch.cat([time, (2 * c**0.5 * ratio) * u], dim=-1)


def distance(x: Tensor, y: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the geodesic distance between points, pair by pair (not for matrices of scores).

    Shapes: x, y ``[..., D]``, broadcast together -> ``[...]``.
    Range: points within :func:`max_norm`, as accurate as ``1 - c |x|^2``; infinite on the boundary,
    NaN outside the ball.
    Gradient: zero where ``x = y``.
    Source: ``sinh(sqrt(c) d / 2)^2 = c |x - y|^2 / ((1 - c |x|^2) (1 - c |y|^2))``.
    """
    x, y = at_least_float32(x), at_least_float32(y)
    gaps = _gap(x.square().sum(-1), c) * _gap(y.square().sum(-1), c)
    # the smallest positive number keeps the square root differentiable at distance zero
    squared = (c * (x - y).square().sum(-1) / gaps).clamp_min(torch.finfo(x.dtype).tiny)
    return 2 / c**0.5 * torch.asinh(squared.sqrt())


def pairwise_distance(x: Tensor, y: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the geodesic distances of all pairs from two lists of points, by one matrix product.

    Shapes: x ``[..., N, D]``, y ``[..., M, D]`` -> ``[..., N, M]``, without larger intermediates.
    Range: in float32 the error of a product at radius ``r`` is up to ``1e-6 cosh(r)^2`` at 1, 2e-6
    at 3 and 4e-5 at 6.2, where ``1 - |x|^2`` has few digits left. It hides distances below its
    square root.
    """
    lifted = (to_lorentz(p, c=c) * c**0.5 for p in (x, y))
    return (pairwise_squared_distance(*lifted) / c).sqrt()


def pairwise_squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """Return squared geodesic distances on the hyperboloid of curvature -1, for attention scores.

    Shapes: x ``[..., N, D + 1]``, y ``[..., M, D + 1]``, both from :func:`lift_tangent`
    -> ``[..., N, M]``. Range: that of :func:`pairwise_distance`.
    """
    return squared_arcosh(lorentz.pairwise_inner(x, y))


def squared_arcosh(product: Tensor) -> Tensor:
    """Return ``arcosh(-p)^2`` of Lorentz products ``p``: squared distances at curvature -1.

    Shapes: any, elementwise. Range: products of -1 and below; those above count as -1.
    Gradient: finite also at distance zero, where it is -2.
    """
    squared, _ = with_gradient(_SquaredArcosh, product)
    return squared


def midpoint(points: Tensor, weights: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the weighted gyromidpoint: the Einstein midpoint, or Lorentz centroid, of the points.

    Shapes: points ``[..., N, D]``, weights ``[..., M, N]`` (not negative; their scale is free)
    -> ``[..., M, D]``. Range: midpoints within :func:`max_norm`; others are clamped, and
    weights that are all zero give the origin.
    Source: Shimizu et al. 2021, in place of HVT eq. 24, whose sum depends on the points' order.
    """
    lifted = lift_tangent(log_origin(points, c=c), c=c)
    return exp_origin(centroid_tangent(matrix_product(weights, lifted), c=c), c=c)


def centroid_tangent(total: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the tangent of the midpoint of lifted points from their weighted sum.

    The tangent has the sum's direction, and the sum's slope ``|s| / t = tanh(2 sqrt(c) |u|)`` gives
    its length ``|u|``; neither depends on the weights' scale.

    Shapes: ``[..., D + 1]``, a sum of :func:`lift_tangent` -> ``[..., D]``.
    Range: that of :func:`midpoint`. Source: as there, in place of HVT eq. 24.
    """
    total = at_least_float32(total)
    time, space = total.split([1, total.size(-1) - 1], dim=-1)
    slope = space / time.masked_fill(time < LEAST_TOTAL, 1.0)
    length = _length(_square(slope))
    # rounding may make the slope 1, where artanh is infinite
    inside = length.clamp_max(max_slope(total.dtype))
    return slope * (torch.atanh(inside) / (2 * c**0.5 * length))


def _gap(squared: Tensor, c: float) -> Tensor:
    """Return ``1 - c |x|^2``, and NaN outside the ball."""
    gap = 1 - c * squared
    return gap.masked_fill(gap < 0, torch.nan)


def _square(x: Tensor) -> Tensor:
    return with_gradient(_Square, x)


def _length(squared: Tensor) -> Tensor:
    """Return a square root that is never zero, for even functions of it that are smooth at zero.

    Adding one rounding does not change such a function, and the gradients of its numerator and
    denominator, which are large near zero, still cancel to a few digits.
    """
    return (squared + torch.finfo(squared.dtype).eps).sqrt()


def _tanh_ratio(squared: Tensor) -> Tensor:
    """Return ``tanh(a) / a`` from ``a^2``, with the tanh clamped."""
    length = _length(squared)
    return torch.tanh(length).clamp_max(max_norm(length.dtype)) / length


def _artanh_ratio(squared: Tensor) -> Tensor:
    """Return ``artanh(a) / a`` from ``a^2``, with the argument of artanh clamped."""
    length = _length(squared)
    return torch.atanh(length.clamp_max(max_norm(length.dtype))) / length


class _Square(torch.autograd.Function):
    """Squared norms ``[..., 1]``, with a gradient in one pass where autograd takes three."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square().sum(-1, keepdim=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], _: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x * (2 * grad)


class _SquaredArcosh(torch.autograd.Function):
    """``arcosh(-p)^2`` of Lorentz products ``p <= -1``, and half its slope ``f``; both are smooth.

    With ``e = -p - 1`` and ``a = log1p(e + sqrt(e (e + 2)))``, the result is ``a^2`` and its
    derivative by ``e`` is ``2 f`` with ``f = a / sqrt(e (e + 2))``, 1 at ``e = 0``. ``f`` satisfies
    ``e (e + 2) f' + (e + 1) f = 1``. So gradients have derivatives of any order.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(product: Tensor) -> tuple[Tensor, Tensor]:
        excess = _excess(product)
        root = excess.add(2).mul_(excess).sqrt_()
        arcosh = excess.add_(root).log1p_()
        slope = arcosh / root
        # not in place: torch.compile of torch 2.11 loses the gradient of such a result
        return arcosh.square(), slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, grad_slope: Tensor | None) -> Tensor | None:
        product, slope = ctx.saved_tensors
        found = None if grad is None else slope * grad * -2
        if grad_slope is None:
            return found
        of_slope = -grad_slope * _slope_of_slope(_excess(product), slope)
        return of_slope if found is None else found + of_slope


def _excess(product: Tensor) -> Tensor:
    """Return ``-p - 1``, at least one rounding: a smaller value is noise."""
    return product.add(1).neg_().clamp_min_(torch.finfo(product.dtype).eps)


def _slope_of_slope(excess: Tensor, slope: Tensor) -> Tensor:
    """Return ``f'`` of :class:`_SquaredArcosh`, from a series near 0, where it cancels."""
    series, coefficient = torch.zeros_like(excess), 1.0
    coefficients = [coefficient := -n * coefficient / (2 * n + 1) for n in range(1, SERIES + 1)]
    for n in range(SERIES, 0, -1):
        series = series * excess + n * coefficients[n - 1]
    formula = (1 - (excess + 1) * slope) / (excess * (excess + 2))
    return torch.where(excess < SERIES_BELOW, series, formula)
