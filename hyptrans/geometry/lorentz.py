"""The Lorentz model of hyperbolic space.

A point of curvature ``-c`` (``c > 0``) is ``x = (x_t, x_s)`` with the time coordinate first:
``<x, x> = -x_t^2 + |x_s|^2 = -1/c`` and ``x_t > 0``. The last dimension of every tensor is the
coordinate, all others are batch dimensions. ``c`` is a number or a tensor that broadcasts against
``[..., 1]``. Inputs in half precision give float32 results, which times and products need.
"""

import functools
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry.precision import at_least_float32, matrix_product

CurvatureLike = float | Tensor

SPACE_NORM_EPSILON = 1e-6
"""Epsilon in float32; see :func:`space_norm_epsilon`."""
TIME_MARGIN = 0.1
"""Keeps the times from :func:`from_linear` strictly above the origin's, so that the direction of
the space part matters."""
TIME_SHARE_MARGIN = 1e-4
"""Keeps the result of :func:`time_argument` finite."""
FAR = 1e3
"""Beyond this time, in units of ``1/sqrt(c)``, :func:`distance` uses other formulas."""
UNRESOLVED = 1e6
"""A distance has no correct digits if ``sinh(d / 2)^2`` is off by this many float64 roundings."""
LEAST_GAP = 1e-12
"""Least ``|v|_L^2 / v_t^2`` at which float64 determines a centroid to one in ten thousand."""


def inner(x: Tensor, y: Tensor) -> Tensor:
    """Return the Lorentz product ``-x_t y_t + x_s . y_s``.

    Shapes: x, y ``[..., D]``, broadcast together -> ``[...]``.
    Range: the error is about one rounding of ``x_t y_t``. Where that overflows, at times above 1e19
    in float32 and 1e154 in float64, the result is infinite or NaN.
    """
    product = at_least_float32(x) * at_least_float32(y)
    return product[..., 1:].sum(-1) - product[..., 0]


def pairwise_inner(x: Tensor, y: Tensor) -> Tensor:
    """Return the Lorentz products of all pairs from two lists of points, by one matrix product.

    Shapes: x ``[..., N, D]``, y ``[..., M, D]`` -> ``[..., N, M]``. Range: that of :func:`inner`.
    """
    return matrix_product(x * time_signs(x), y.transpose(-2, -1))


def time_signs(like: Tensor, size: float = 1.0) -> Tensor:
    """Return ``(-1, 1, ..., 1)`` times ``size``, the diagonal of the Lorentz metric.

    Shapes: ``[..., D]``, only its width counts -> ``[D]``. Range: exact.
    """
    made = like.size(-1), size, like.dtype, like.device
    # a compiler must make the constant part of its graph
    return _signs.__wrapped__(*made) if torch.compiler.is_compiling() else _signs(*made)


@functools.lru_cache(maxsize=256)
def _signs(width: int, size: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    # training may need for its gradients what an earlier translation cached in inference mode
    with torch.inference_mode(False):
        signs = torch.full((width,), size, dtype=dtype, device=device)
        signs[0] = -size
        return signs


def flip_time(x: Tensor) -> Tensor:
    """Return ``(-x_t, x_s)``, whose ordinary dot product is the Lorentz product with ``x``.

    Shapes: ``[..., D]`` -> ``[..., D]``. Range: exact.
    """
    return torch.cat([-x[..., :1], x[..., 1:]], dim=-1)


def lift(space: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Return the point of the hyperboloid above space coordinates.

    Shapes: ``[..., D - 1]`` -> ``[..., D]``.
    Range: any coordinates; at lengths beyond 1e19 in float32 (1e154 in float64) times are infinite.
    """
    space, inverse_c = at_least_float32(space), 1 / c
    if _has_own_gradient(space, inverse_c):
        return _Lift.apply(space, inverse_c)
    squared = torch.linalg.vector_norm(space, dim=-1, keepdim=True).square()
    return torch.cat([(squared + inverse_c).sqrt(), space], dim=-1)


def _has_own_gradient(space: Tensor, inverse_c: CurvatureLike) -> bool:
    """Return whether :class:`_Lift` may compute a lift: only plain autograd uses its gradient.

    Transforms of ``torch.func`` and compilers use the formula.
    """
    if not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    if torch._C._are_functorch_transforms_active():
        return False
    if not isinstance(inverse_c, Tensor):
        return space.requires_grad
    return inverse_c.numel() == 1 and (space.requires_grad or inverse_c.requires_grad)


class _Lift(torch.autograd.Function):
    """:func:`lift`, whose gradient in one pass saves autograd's five."""

    @staticmethod
    def forward(ctx: Any, space: Tensor, inverse_c: CurvatureLike) -> Tensor:
        squared = torch.linalg.vector_norm(space, dim=-1, keepdim=True).square()
        lifted = torch.cat([(squared + inverse_c).sqrt(), space], dim=-1)
        ctx.save_for_backward(lifted)
        ctx.shape = inverse_c.shape if isinstance(inverse_c, Tensor) else None
        return lifted

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (lifted,) = ctx.saved_tensors
        by_time = grad[..., :1] / lifted[..., :1]
        of_c = by_time.sum().view(ctx.shape) / 2 if ctx.needs_input_grad[1] else None
        return torch.addcmul(grad[..., 1:], by_time, lifted[..., 1:]), of_c


def time_above(squared: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Return the time ``sqrt(|x_s|^2 + 1/c)`` of a point from its squared space length.

    Shapes: any, elementwise. Range: any; infinite for infinity.
    """
    return (at_least_float32(squared) + 1 / c).sqrt()


def origin(
    width: int,
    *,
    c: float = 1.0,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Return the point ``(1/sqrt(c), 0, ..., 0)`` of ``width`` coordinates, time included.

    Range: ``c`` above 0.
    """
    point = torch.zeros(width, dtype=dtype, device=device)
    point[0] = c**-0.5
    return point


def distance(x: Tensor, y: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the geodesic distance between points, pair by pair (not for matrices of scores).

    Shapes: x, y ``[..., D]``, broadcast together -> ``[...]``.
    Range: space coordinates of lengths up to 1e150; computed from them in float64, whatever the
    dtype. At radii ``r`` and ``s`` the error is at most ``1e-15 exp(sqrt(c) (r + s) / 2)`` or a few
    roundings. Pairs too far out (``r + s`` above ``44 / sqrt(c)``) and too close together to leave
    any correct digit give NaN.
    Gradient: zero where ``x = y``.
    Source: ``sinh(sqrt(c) d / 2)^2 = c |x - y|_L^2 / 4``, which far out equals
    ``sinh((r - s) / 2)^2 + sinh(r) sinh(s) |u - v|^2 / 4`` with radii ``r, s`` and directions
    ``u, v``. The arcosh form has a median error of 9 % in float32 at radius 3, points 0.008 apart.
    """
    dtype = at_least_float32(x).dtype
    # in units of 1/sqrt(c); float32 times would be off for pairs on one ray: 1 % at radius 6, 210 %
    # at 9
    x, y = torch.broadcast_tensors(x[..., 1:].double() * c**0.5, y[..., 1:].double() * c**0.5)
    tx, ty = lift(x)[..., 0], lift(y)[..., 0]
    # the difference of the times, without subtracting two large numbers
    dt = ((x - y) * (x + y)).sum(-1) / (tx + ty)
    # for both formulas far out; clamped lengths avoid division by zero where neither is used
    a, b = (tx.square() - 1).clamp_min(1).sqrt(), (ty.square() - 1).clamp_min(1).sqrt()
    apart = (x / a.unsqueeze(-1) - y / b.unsqueeze(-1)).square().sum(-1)
    by_radii = ((torch.asinh(a) - torch.asinh(b)) / 2).sinh().square() + a * b * apart / 4
    noise = torch.finfo(x.dtype).eps ** 2 * a * b
    lost = (noise > 1 / UNRESOLVED**2) & (by_radii < UNRESOLVED * noise)
    squared = torch.where(
        torch.maximum(tx, ty) < FAR,
        ((x - y).square().sum(-1) - dt.square()) / 4,
        torch.where(
            torch.minimum(tx, ty) < 2,
            (tx * ty - (x * y).sum(-1) - 1) / 2,
            by_radii.masked_fill(lost, torch.nan),
        ),
    )
    # the smallest positive number keeps the square root differentiable at distance zero
    squared = squared.clamp_min(torch.finfo(x.dtype).tiny)
    return (2 / c**0.5 * torch.asinh(squared.sqrt())).to(dtype)


def squared_distance(x: Tensor, y: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Return the squared Lorentzian distance ``|x - y|_L^2 = -2/c - 2 <x, y>`` (Law et al. 2019).

    Shapes: x, y ``[..., D]``, broadcast together -> ``[...]``.
    Range: ``[0, inf)`` but for the error of :func:`inner`; not the square of :func:`distance`.
    """
    return -2 / c - 2 * inner(x, y)


def exp_origin(space: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Apply the exponential map at the origin to the tangent vector ``(0, space)``.

    Shapes: ``[..., D - 1]`` -> ``[..., D]``. The zero vector gives the origin, with gradient one.
    Range: vectors up to a length of ``88 / sqrt(c)`` in float32 (709 in float64); beyond, times are
    infinite.
    """
    space = at_least_float32(space)
    squared = c * space.square().sum(-1, keepdim=True)
    time = cosh(squared) * (1 / c) ** 0.5
    # finite, as zero times infinity would be NaN
    moved = space * sinh_ratio(squared).clamp_max(torch.finfo(space.dtype).max)
    return torch.cat([time.expand_as(moved[..., :1]), moved], dim=-1)


def log_origin(x: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Invert :func:`exp_origin`: return the space part of the tangent vector at the origin.

    Shapes: ``[..., D]`` -> ``[..., D - 1]``.
    Range: points up to radius ``44 / sqrt(c)`` in float32 (355 in float64); beyond, where the
    square of their space part overflows, NaN.
    """
    space = at_least_float32(x)[..., 1:]
    # near the origin, asinh of the space part keeps digits that arcosh of the time loses
    squared = c * space.square().sum(-1, keepdim=True)
    length = torch.where(squared > 0, squared, torch.ones_like(squared)).sqrt()
    return space * torch.where(squared > 0, torch.asinh(length) / length, 1.0)


def normalize(v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Scale a time-like vector onto the hyperboloid: ``v / (sqrt(c) |v|_L)``.

    A sum of points with positive weights is time-like, and its normalization, which does not depend
    on the scale of the weights, is their centroid. Attention computes centroids this way.

    Shapes: ``[..., D]`` -> ``[..., D]``.
    Range: any vector but zero (a sum without any weight), which gives NaN. A single point keeps
    half of its digits up to radius ``4 / sqrt(c)`` in float32 (9 in float64); a sum farther out
    than ``8.66 / sqrt(c)`` (18.7) moves back to there, so that gradients stay finite.
    :func:`centroid` is more accurate. Source: HyboNet eq. 4.
    """
    v = at_least_float32(v)
    # the slope |v_s| / v_t of a sum of points is below 1; only rounding brings it near or above 1.
    # Square the slope, not v: squares of vectors near 1e-20 would underflow
    slope = v[..., 1:] / v[..., :1]
    gap = (1 - slope.square().sum(-1, keepdim=True)).clamp_min(torch.finfo(v.dtype).eps)
    return lift(slope / (gap * c).sqrt(), c=c)


def centroid(points: Tensor, weights: Tensor | None = None, *, c: CurvatureLike = 1.0) -> Tensor:
    """Return the weighted Lorentz centroid, which minimizes the squared Lorentzian distances.

    Shapes: points ``[..., N, D]``, weights ``[..., M, N]`` (none negative, not all zero; their
    scale is free) -> ``[..., M, D]``; without weights the plain centroid ``[..., D]``.
    Range: accurate to one in ten thousand up to radius ``14 / sqrt(c)``, NaN where the centroid is
    farther out; computed in float64 from the space coordinates, whatever the dtype.
    Source: HyboNet eq. 4.
    """
    dtype = at_least_float32(points).dtype
    lifted = lift(points[..., 1:].double(), c=c)
    total = lifted.mean(-2) if weights is None else matrix_product(weights.double(), lifted)
    slope = total[..., 1:] / total[..., :1]
    known = 1 - slope.square().sum(-1, keepdim=True) > LEAST_GAP
    return normalize(total, c=c).masked_fill(~known, torch.nan).to(dtype)


def from_linear(z: Tensor, log_scale: Tensor, *, c: float = 1.0) -> Tensor:
    """Turn the result of a linear map into points: HyboNet's linear layer after its matrix product.

    The time is ``sigmoid(z_t) exp(log_scale) + 1/sqrt(c) + 0.1``, and the space part is ``z_s``
    rescaled to match; a zero ``z_s`` gives the origin. Where ``|z_s|^2`` is near its epsilon, the
    rescaled space part is shorter, and the time, recomputed from it, is less.

    Shapes: z ``[..., d]``, log_scale broadcasts against ``[..., 1]`` -> ``[..., d]``.
    Range: any finite numbers and scales; computed in float32 or better. In float32, space parts
    longer than 1e19 give the origin.
    Gradient: finite, even at zero space coordinates (in float32 below 1e3 times the time).
    Source: HyboNet eq. 3, with the scale ``lambda`` as its logarithm, as in the paper's code.
    """
    z = at_least_float32(z)
    space = z[..., 1:]
    scale = at_least_float32(log_scale).exp()
    time = z[..., :1].sigmoid() * scale + (c**-0.5 + TIME_MARGIN)
    squared = space.square().sum(-1, keepdim=True)
    squared = squared + space_norm_epsilon(squared.dtype)
    return lift(space * ((time.square() - 1 / c) / squared).sqrt(), c=c)


def time_argument(time: Tensor, log_scale: Tensor, *, c: float = 1.0) -> Tensor:
    """Return the ``z_t`` for which :func:`from_linear` gives ``time``, or comes closest to it.

    Shapes: time ``[...]``, log_scale broadcasts against it -> ``[...]``.
    Range: about -9.2 to 9.2. Gradient: zero for times out of reach of :func:`from_linear`.
    """
    scale = at_least_float32(log_scale).exp()
    share = (at_least_float32(time) - (c**-0.5 + TIME_MARGIN)) / scale
    # earlier layers with larger scales give times that this layer cannot reach
    return torch.logit(share.clamp(TIME_SHARE_MARGIN, 1 - TIME_SHARE_MARGIN))


def space_norm_epsilon(dtype: torch.dtype) -> float:
    """Return the number to add to a squared norm before dividing by it.

    With it the zero vector has no direction. Range: about eight roundings, 1e-6 in float32 and
    2e-15 in float64: too little for training to notice, enough for a finite gradient at zero.
    """
    return SPACE_NORM_EPSILON * torch.finfo(dtype).eps / torch.finfo(torch.float32).eps


def violation(x: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Return how far a point is off its hyperboloid, relatively: ``|<x,x> + 1/c| / x_t^2``.

    Shapes: ``[..., D]`` -> ``[...]``. Range: for a point, rounding noise (about 1e-7 in float32).
    """
    x = at_least_float32(x)
    return (inner(x, x) + 1 / c).abs() / x[..., 0].square()


def cosh(squared: Tensor) -> Tensor:
    """Return ``cosh(a)`` from ``a^2``, with a finite gradient at zero. Range: that of ``cosh``."""
    return 1 + squared / 2 * sinh_ratio(squared / 4).square()


def sinh_ratio(squared: Tensor) -> Tensor:
    """Return ``sinh(a) / a``, one at zero, from ``a^2``; gradient: finite. Range: of ``sinh``."""
    length = torch.where(squared > 0, squared, torch.ones_like(squared)).sqrt()
    return torch.where(squared > 0, torch.sinh(length) / length, 1.0)
