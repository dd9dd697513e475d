"""Mobius addition on the Poincare ball, of points given by their tangents at the origin.

Between matrix products a layer of the ball computes scalars per point besides rows; in plain torch
each of them is an operator. The kernels compute these functions of a row's squared length for many
rows together, as vector code. Their scalars are the ball's ``c``, the largest norm in the unit ball
(``bound``) and the unit of rounding (``epsilon``); ``one`` is 1 in the dtype of the others. The
formulas are those of :mod:`hyptrans.geometry.poincare`.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import BLOCK, TILE, applied, backend, blocks_of, run
from hyptrans.kernels.cpu import inlined, log1p, matrix, read, tanh_ratio


def add_tangents(u: Tensor, v: Tensor, *, c: float = 1.0, relu: bool = False) -> Tensor:
    """Return :func:`hyptrans.geometry.poincare.add_tangents`, followed by ReLU if ``relu``.

    Shapes: u, v ``[..., D]``, broadcast together -> ``[..., D]``; kernels compute it if the shape
    of ``v`` is that of the last dimensions of ``u``. Source: HVT eq. 3 and 10.
    """
    u, v = at_least_float32(u), at_least_float32(v)
    repeated = 0 < v.dim() <= u.dim() and v.shape == u.shape[u.dim() - v.dim() :]
    if not repeated or u.dtype != v.dtype or backend(u) == "eager":
        total = poincare.add_tangents(u, v, c=c)
        return F.relu(total) if relu else total
    return applied(_AddTangents, u, v, (c, relu))


class _AddTangents(torch.autograd.Function):
    """Kernels of :func:`add_tangents`."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, options: tuple[float, bool]) -> Tensor:
        u, v, (c, relu) = u.contiguous(), v.contiguous(), options
        out, ctx.c = torch.empty_like(u), c
        run(add_forward, (u, v, out), ball_scalars(u, c), (relu,))
        ctx.save_for_backward(u, v, out if relu else None)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, v, made = ctx.saved_tensors
        grad_u, each = torch.empty_like(u), v.numel() == u.numel()
        by_v = torch.empty_like(v) if each else u.new_empty(blocks_of(u), v.numel())
        matrices = (grad.contiguous(), u, v, grad_u, by_v, made)
        run(add_backward, matrices, ball_scalars(u, ctx.c), (made is not None,))
        return grad_u, by_v if each else by_v.sum(0).view_as(v), None


def ball_scalars(like: Tensor, c: float) -> tuple[float, float, float]:
    """Return the ball's ``c``, the largest norm in the unit ball, and the unit of rounding."""
    return c, poincare.max_norm(like.dtype), torch.finfo(like.dtype).eps


def add_forward(block: int, pointer: Any) -> None:
    """Mobius-add to rows ``[N, d]`` as many rows, or each of ``R`` rows to every ``R``-th row.

    Matrices: rows, addends ``[N or R, d]``, sums. Integers: whether ReLU follows.
    """
    job = read(pointer)
    u, v, out = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    c, bound, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    rows, d = u.shape
    zero, one, added = u.dtype.type(0), u.dtype.type(1), v.shape[0]
    least = zero if job.integers[0] else u.dtype.type(-np.inf)
    of_u, of_v, both = np.empty((3, TILE), u.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n, m = start + k, (start + k) % added
            u2, v2, uv = zero, zero, zero
            for j in range(d):
                u2 += u[n, j] * u[n, j]
                v2 += v[m, j] * v[m, j]
                uv += u[n, j] * v[m, j]
            of_u[k], of_v[k], both[k] = c * u2, c * v2, c * uv
        for k in range(tile):
            of_u[k], of_v[k] = shares(of_u[k], of_v[k], both[k], bound, epsilon, one)
        for k in range(tile):
            n, m = start + k, (start + k) % added
            share, other = of_u[k], of_v[k]
            for j in range(d):
                total = share * u[n, j] + other * v[m, j]
                out[n, j] = least if total < least else total


def add_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`add_forward`.

    Matrices: gradient of the sums, rows, addends, gradient of the rows, gradient of the addends
    ``[N, d]`` or ``partial`` ``[blocks, R d]``, and the output of ReLU or nothing.
    """
    job = read(pointer)
    grad, u, v = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    grad_u, grad_v = matrix(job, 3), matrix(job, 4)
    relu = job.integers[0] != 0
    made = matrix(job, 5) if relu else u
    c, bound, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    rows, d = u.shape
    zero, one, added = u.dtype.type(0), u.dtype.type(1), v.shape[0]
    each = added == rows
    if not each:
        grad_v[block] = zero
    u2s, v2s, uvs, alongs, others = np.empty((5, TILE), u.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n, m = start + k, (start + k) % added
            u2, v2, uv, along, other = zero, zero, zero, zero, zero
            for j in range(d):
                u2 += u[n, j] * u[n, j]
                v2 += v[m, j] * v[m, j]
                uv += u[n, j] * v[m, j]
                g = _through(grad[n, j], made[n, j], relu, zero)
                along += g * u[n, j]
                other += g * v[m, j]
            u2s[k], v2s[k], uvs[k] = c * u2, c * v2, c * uv
            alongs[k], others[k] = along, other
        for k in range(tile):
            share, other, by_u2, by_v2, by_uv = by_lengths(
                u2s[k], v2s[k], uvs[k], alongs[k], others[k], bound, epsilon, one
            )
            alongs[k], others[k] = share, other
            u2s[k], v2s[k], uvs[k] = (by_u2 + by_u2) * c, (by_v2 + by_v2) * c, by_uv * c
        for k in range(tile):
            n, m = start + k, (start + k) % added
            share, other, of_u, of_v, across = alongs[k], others[k], u2s[k], v2s[k], uvs[k]
            if each:
                for j in range(d):
                    g, x, y = _through(grad[n, j], made[n, j], relu, zero), u[n, j], v[n, j]
                    grad_u[n, j] = share * g + of_u * x + across * y
                    grad_v[n, j] = other * g + of_v * y + across * x
            else:
                for j in range(d):
                    g = _through(grad[n, j], made[n, j], relu, zero)
                    grad_u[n, j] = share * g + of_u * u[n, j] + across * v[m, j]
                sums = grad_v[block, m * d : (m + 1) * d]
                for j in range(d):
                    g = _through(grad[n, j], made[n, j], relu, zero)
                    sums[j] += other * g + of_v * v[m, j] + across * u[n, j]


@inlined
def _through(grad: float, made: float, relu: bool, zero: float) -> float:
    """Return the gradient before a ReLU; without a ReLU, the gradient unchanged."""
    return grad if not relu or made > zero else zero


@inlined
def tanh(squared: float, bound: float, epsilon: float, one: float) -> Any:
    """Return ``tanh(a) / a``, clamped, from ``a^2``, and its derivative by ``a^2``."""
    squared += epsilon
    length = math.sqrt(squared)
    ratio = tanh_ratio(length)
    most = bound / length
    slope = one - squared * ratio * ratio if ratio < most else one - one
    ratio = ratio if ratio < most else most
    return ratio, (slope - ratio) / (squared + squared)


@inlined
def artanh(squared: float, bound: float, epsilon: float, one: float) -> Any:
    """Return ``artanh(a) / a``, with ``a`` clamped, from ``a^2``, and its derivative by ``a^2``."""
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
    """Return the factors of :func:`shares`, and the gradients of its arguments u2, v2 and uv.

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
    """Return the factors of two tangents in their sum, from ``c`` times their dot products."""
    nothing = one - one
    found = by_lengths(u2, v2, uv, nothing, nothing, bound, epsilon, one)
    return found[0], found[1]
