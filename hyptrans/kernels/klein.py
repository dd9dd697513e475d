"""Points from the directions and radii of heads, as in HAN."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry import klein
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import apply, backend, no_second_derivative
from hyptrans.kernels.cpu import (
    BLOCK,
    TILE,
    inlined,
    matrix,
    read,
    run,
    sinh_ratio,
    tanh_ratio,
)

TINY = 1e-30
"""Added to the divisor of a ratio, where it matters only near zero. A squared length below it
counts as zero, as its root would have few correct digits or none."""


def split_heads(z: Tensor, heads: int) -> Tensor:
    """Split rows into equal parts, one per head: ``[B, T, P, H n]`` -> ``[P, B, H, T, n]``."""
    return z.unflatten(-1, (heads, -1)).permute(2, 0, 3, 1, 4)


def polar_heads(z: Tensor, heads: int, max_radius: float) -> Tensor:
    """Return :func:`hyptrans.geometry.klein.polar_points` of each head's coordinates.

    Shapes: ``[B, T, P, H n]`` -> ``[P, B, H, T, n]``.
    """
    z = at_least_float32(z)
    if backend(z) == "eager":
        return klein.polar_points(split_heads(z, heads), max_radius)
    made: Tensor = apply(_PolarHeads, z, (heads, max_radius))
    return made


class _PolarHeads(torch.autograd.Function):
    """Kernels of :func:`polar_heads`."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, options: tuple[int, float]) -> Tensor:
        z, (heads, max_radius) = z.contiguous(), options
        batch, length, projections, width = z.shape
        ctx.sizes = batch, length, projections, heads
        ctx.scalars = max_radius, klein.DIRECTION_EPSILON, TINY
        ctx.save_for_backward(z)
        # a point has a time in place of the radius
        out = z.new_empty(projections, batch, heads, length, width // heads)
        run(polar_forward, (out, z.view(-1, out.size(-1))), ctx.scalars, ctx.sizes)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise no_second_derivative()
        (z,) = ctx.saved_tensors
        grad, grad_z = grad.contiguous(), torch.empty_like(z)
        rows = (-1, grad.size(-1))
        matrices = (grad, z.view(rows), grad_z.view(rows))
        run(polar_backward, matrices, ctx.scalars, ctx.sizes)
        return grad_z, None


@inlined
def _place(row: int, sizes: Any) -> int:
    """Return the index in ``[B T P H]`` of a row of ``[P B H T]``."""
    batch, length, projections, heads = sizes[0], sizes[1], sizes[2], sizes[3]
    t, rest = row % length, row // length
    h, rest = rest % heads, rest // heads
    b, p = rest % batch, rest // batch
    return ((b * length + t) * projections + p) * heads + h


@inlined
def _scale_and_time(squared: float, radius: float, scalars: Any) -> Any:
    """Return a direction's factor and the time, from its squared length and a radius."""
    most, epsilon, tiny = scalars[0], scalars[1], scalars[2]
    length = math.sqrt(squared) if squared > tiny else squared - squared
    radius *= tanh_ratio(abs(radius) / most + tiny)
    radius *= sinh_ratio(abs(radius) + tiny)
    scale = radius / (length + epsilon)
    length *= scale
    return scale, math.sqrt(length * length + most / most)


@inlined
def _gradients(squared: float, along: float, radius: float, by_time: float, scalars: Any) -> Any:
    """Return the factors of gradient and direction in the latter's gradient, and the radius's."""
    most, epsilon, tiny = scalars[0], scalars[1], scalars[2]
    one = most / most
    length = math.sqrt(squared) if squared > tiny else one - one
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


def polar_forward(block: int, pointer: Any) -> None:
    """Map directions and radii to points, laid out head by head.

    Matrices: points ``[P B H T, n]``, coordinates ``[B T P H, n]``, radii last. Scalars: the
    largest radius, a length's epsilon, a tiny number. Integers: B, T, P, H.
    """
    job = read(pointer)
    out, given = matrix(job, 0), matrix(job, 1)
    (rows, d), zero = out.shape, out.dtype.type(0)
    scales, times = np.empty((2, TILE), out.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n, squared = _place(start + k, job.integers), zero
            for j in range(d - 1):
                squared += given[n, j] * given[n, j]
                out[start + k, j + 1] = given[n, j]
            scales[k], times[k] = squared, given[n, d - 1]
        for k in range(tile):
            scales[k], times[k] = _scale_and_time(scales[k], times[k], job.scalars)
        for k in range(tile):
            scale = scales[k]
            for j in range(1, d):
                out[start + k, j] *= scale
            out[start + k, 0] = times[k]


def polar_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`polar_forward`.

    Matrices: gradient of the points, coordinates, gradient of the coordinates. Scalars and integers
    as for :func:`polar_forward`.
    """
    job = read(pointer)
    grad, given, grad_given = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    (rows, d), zero = grad.shape, grad.dtype.type(0)
    scales, alongs, radii, times = np.empty((4, TILE), grad.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n, squared, along = _place(start + k, job.integers), zero, zero
            for j in range(d - 1):
                squared += given[n, j] * given[n, j]
                along += given[n, j] * grad[start + k, j + 1]
            scales[k], alongs[k] = squared, along
            radii[k], times[k] = given[n, d - 1], grad[start + k, 0]
        for k in range(tile):
            scales[k], alongs[k], radii[k] = _gradients(
                scales[k], alongs[k], radii[k], times[k], job.scalars
            )
        for k in range(tile):
            n, scale, along = _place(start + k, job.integers), scales[k], alongs[k]
            for j in range(d - 1):
                grad_given[n, j] = scale * grad[start + k, j + 1] + along * given[n, j]
            grad_given[n, d - 1] = radii[k]
