"""Riemannian operations on points of :mod:`hyptrans.geometry.lorentz`, for optimizers."""

import math

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike, cosh, inner, lift, sinh_ratio
from hyptrans.geometry.precision import at_least_float32


def tangent_above(x: Tensor, space: Tensor) -> Tensor:
    """Return the tangent vector at ``x`` with a given space part; ``<x, v> = 0`` fixes its time.

    Shapes: x ``[..., D]``, space ``[..., D - 1]`` -> ``[..., D]``. Range: any point and vector.
    """
    time = (x[..., 1:] * space).sum(-1, keepdim=True) / x[..., :1]
    return torch.cat([time, space], dim=-1)


def project_tangent(x: Tensor, v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Project an ambient vector orthogonally onto the tangent space at ``x``.

    The time of the result follows from the space part, ``v_t = x_s . v_s / x_t``, so that rounding
    cannot leave it off the tangent space.

    Shapes: x, v ``[..., D]`` -> ``[..., D]``.
    Range: the error of :func:`hyptrans.geometry.lorentz.inner`, times ``c |x_s|``.
    """
    x, v = at_least_float32(x), at_least_float32(v)
    space = v[..., 1:] + c * inner(x, v).unsqueeze(-1) * x[..., 1:]
    return tangent_above(x, space)


def tangent_squared_norm(x: Tensor, v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Squared Riemannian norm of a tangent vector at ``x``, as a sum of squares, never negative.

    ``|v|^2 = |w|^2 + c (x_s . w)^2`` with ``w = v_s - v_t x_s / x_t``. Float32's ``<v, v>`` is
    negative in one row of three at radius 9. ``v`` may have any component along ``x``: it drops
    out, so a gradient whose time was negated needs no projection first.

    Shapes: x, v ``[..., D]`` -> ``[..., 1]``. Range: ``[0, inf)``; any point and vector.
    """
    x, v = at_least_float32(x), at_least_float32(v)
    w = v[..., 1:] - v[..., :1] * x[..., 1:] / x[..., :1]
    along = (x[..., 1:] * w).sum(-1, keepdim=True)
    return w.square().sum(-1, keepdim=True) + c * along.square()


def exp(x: Tensor, v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Apply the exponential map at ``x`` to a tangent vector.

    The length ``l`` of the vector comes from its space part, as that of a tangent determines its
    time.

    Shapes: x, v ``[..., D]`` -> ``[..., D]``.
    Range: ``l`` up to ``88 / sqrt(c)`` minus the radius of ``x`` in float32 (709 in float64);
    beyond, infinite or NaN. The space part is off by a few roundings of ``cosh(sqrt(c) l) |x_s|``:
    towards the origin, a step loses as many digits as ``exp(2 sqrt(c) l)`` has.
    """
    x, v = at_least_float32(x), at_least_float32(v)
    along = (x[..., 1:] * v[..., 1:]).sum(-1, keepdim=True) / x[..., :1]
    across = v[..., 1:] - along / x[..., :1] * x[..., 1:]
    # |v|^2 of tangent_squared_norm with the time of a tangent, which leaves no small difference
    squared = c * across.square().sum(-1, keepdim=True) + (along / x[..., :1]).square()
    return lift(cosh(squared) * x[..., 1:] + sinh_ratio(squared) * v[..., 1:], c=c)


def transport(x: Tensor, y: Tensor, v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Transport a tangent vector in parallel along the geodesic from ``x`` to ``y``.

    The result is ``v + <y, v> / (1/c - <x, y>) (x + y)``. Its denominator is at least ``2/c``; the
    formula with logarithms divides by a squared distance, rounding noise for small steps.

    Shapes: x, y, v ``[..., D]`` -> ``[..., D]``. Range: the errors of :func:`inner`.
    """
    x, y, v = (at_least_float32(given) for given in (x, y, v))
    along = inner(y, v).unsqueeze(-1) / (1 / c - inner(x, y).unsqueeze(-1))
    return tangent_above(y, v[..., 1:] + along * (x[..., 1:] + y[..., 1:]))


def clamp_radius(x: Tensor, radius: float, *, c: float = 1.0) -> Tensor:
    """Move points farther than ``radius`` from the origin back onto that sphere, along their rays.

    Shapes: ``[..., D]`` -> ``[..., D]``. ``radius`` is a geodesic distance.
    Range: radii up to ``709 / sqrt(c)``.
    """
    x = at_least_float32(x)
    bound = math.sinh(radius * c**0.5) / c**0.5
    length = x[..., 1:].norm(dim=-1, keepdim=True)
    # clamp the divisor: the unused branch of where() has a gradient, too, and it must not be NaN
    inside = lift(x[..., 1:] * (bound / length.clamp_min(bound)), c=c)
    return torch.where(length > bound, inside, x)
