"""Mobius addition and the maps at the origin of the Poincare ball.

Between matrix products a layer of the ball has scalars per point beside its rows; in plain torch
every one of them is an operator. Kernels compute for many rows together what a row's squared
length comes to, as vector code. Scalars of all kernels: the ball's ``c``, the largest norm in the
unit ball, and the unit of rounding.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.ball.scalars import artanh, by_lengths, shares, tanh
from hyptrans.kernels.cpu import BLOCK, TILE, blocks_of, inlined, matrix, read, run
from hyptrans.kernels.operator import Case, Draw, Grads, Kept, Kernels, Made, Operator


def add_tangents(u: Tensor, v: Tensor, *, c: float = 1.0, relu: bool = False) -> Tensor:
    """:func:`hyptrans.geometry.poincare.add_tangents`; ``v`` may be broadcast.

    With ``relu`` what comes out goes through ReLU.
    """
    u, v = at_least_float32(u), at_least_float32(v)
    known = u.dtype == v.dtype and v.dim() <= u.dim()
    if known and v.shape != u.shape[u.dim() - v.dim() :]:
        v = v.expand(u.shape)
    made: Tensor = (ADD_TANGENTS if known else plain_add_tangents)(u, v, c, relu)
    return made


def plain_add_tangents(u: Tensor, v: Tensor, c: float, relu: bool) -> Tensor:
    """:func:`add_tangents` in plain torch."""
    total = poincare.add_tangents(u, v, c=c)
    return F.relu(total) if relu else total


def exp_origin(u: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.exp_origin`."""
    made: Tensor = EXP_ORIGIN(at_least_float32(u), c)
    return made


def log_origin(x: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.log_origin`."""
    made: Tensor = LOG_ORIGIN(at_least_float32(x), c)
    return made


def scalars_of(like: Tensor, c: float) -> tuple[float, float, float]:
    """The ball's ``c``, the largest norm in the unit ball, and the unit of rounding."""
    return c, poincare.max_norm(like.dtype), torch.finfo(like.dtype).eps


def add_forward(block: int, pointer: Any) -> None:
    """Mobius addition of rows ``[N, d]`` and as many, or of each of ``R`` rows to every ``R``-th.

    Matrices: rows, what is added ``[N or R, d]``, sums. Integers: whether ReLU follows.
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
    """Gradient of :func:`add_forward`.

    Matrices: gradient of the sums, rows, what is added, gradient of the rows, gradient of what is
    added ``[N, d]``, or ``partial`` ``[blocks, R d]``, and what came out of ReLU or nothing.
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
    """The gradient before a ReLU, or the same gradient without one."""
    return grad if not relu or made > zero else zero


def _add(u: Tensor, v: Tensor, c: float, relu: bool) -> tuple[Made, Kept]:
    u, v = u.contiguous(), v.contiguous()
    out = torch.empty_like(u)
    run(add_forward, blocks_of(u), (u, v, out), scalars_of(u, c), (relu,))
    return out, (u, v, out if relu else None, c)


def _add_back(kept: Kept, grad: Tensor) -> Grads:
    u, v, made, c = kept
    grad_u, grad_v, each = torch.empty_like(u), torch.empty_like(v), v.numel() == u.numel()
    by_v = grad_v if each else u.new_empty(blocks_of(u), v.numel())
    matrices = (grad.contiguous(), u, v, grad_u, by_v, made)
    run(add_backward, blocks_of(u), matrices, scalars_of(u, c), (made is not None,))
    return grad_u, grad_v if each else by_v.sum(0).view_as(v)


def radial_forward(block: int, pointer: Any) -> None:
    """Exponential map at the origin of rows ``[N, d]``, or its inverse.

    Matrices: rows, results. Integers: whether the map is the inverse.
    """
    job = read(pointer)
    u, out = matrix(job, 0), matrix(job, 1)
    c, bound, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    inverse = job.integers[0] != 0
    rows, d = u.shape
    zero, one = u.dtype.type(0), u.dtype.type(1)
    squares = np.empty(TILE, u.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            squared = zero
            for j in range(d):
                squared += u[start + k, j] * u[start + k, j]
            squares[k] = c * squared
        if inverse:
            for k in range(tile):
                squares[k] = artanh(squares[k], bound, epsilon, one)[0]
        else:
            for k in range(tile):
                squares[k] = tanh(squares[k], bound, epsilon, one)[0]
        for k in range(tile):
            ratio = squares[k]
            for j in range(d):
                out[start + k, j] = u[start + k, j] * ratio


def radial_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`radial_forward`.

    Matrices: gradient of what came, rows, gradient of the rows. Integers as there.
    """
    job = read(pointer)
    grad, u, grad_u = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    c, bound, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    inverse = job.integers[0] != 0
    rows, d = u.shape
    zero, one = u.dtype.type(0), u.dtype.type(1)
    squares, alongs = np.empty((2, TILE), u.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            squared, along = zero, zero
            for j in range(d):
                squared += u[start + k, j] * u[start + k, j]
                along += u[start + k, j] * grad[start + k, j]
            squares[k], alongs[k] = c * squared, (c + c) * along
        if inverse:
            for k in range(tile):
                squares[k], slope = artanh(squares[k], bound, epsilon, one)
                alongs[k] *= slope
        else:
            for k in range(tile):
                squares[k], slope = tanh(squares[k], bound, epsilon, one)
                alongs[k] *= slope
        for k in range(tile):
            ratio, along = squares[k], alongs[k]
            for j in range(d):
                grad_u[start + k, j] = ratio * grad[start + k, j] + along * u[start + k, j]


def _radial(inverse: bool) -> Kernels:
    """Kernels of the exponential map, or of its inverse."""

    def forward(u: Tensor, c: float) -> tuple[Made, Kept]:
        u = u.contiguous()
        out = torch.empty_like(u)
        run(radial_forward, blocks_of(u), (u, out), scalars_of(u, c), (inverse,))
        return out, (u, c)

    def backward(kept: Kept, grad: Tensor) -> Grads:
        u, c = kept
        out = torch.empty_like(u)
        matrices = (grad.contiguous(), u, out)
        run(radial_backward, blocks_of(u), matrices, scalars_of(u, c), (inverse,))
        return (out,)

    return Kernels(forward, backward)


def _add_cases(draw: Draw) -> Iterator[Case]:
    u, v = 0.3 * draw.rows(), 0.3 * draw.rows()
    one = 0.3 * draw(draw.width)
    yield "sum of tangents", (u, v, draw.c, False)
    yield "sum with one tangent", (u, one, draw.c, False)
    yield "sum after ReLU", (u, one, draw.c, True)


def _points(draw: Draw) -> Tensor:
    """Points or tangents within half of the ball, where nothing is clamped."""
    return draw.rows().tanh() * (0.5 * (draw.c * draw.width) ** -0.5)


def _exp_cases(draw: Draw) -> Iterator[Case]:
    yield "exponential map", (_points(draw), draw.c)


def _log_cases(draw: Draw) -> Iterator[Case]:
    yield "logarithm", (_points(draw), draw.c)


ADD_TANGENTS = Operator(
    "sum of tangents", plain_add_tangents, cases=_add_cases, cpu=Kernels(_add, _add_back)
)
EXP_ORIGIN = Operator(
    "exponential map",
    lambda u, c: poincare.exp_origin(u, c=c),
    cases=_exp_cases,
    cpu=_radial(inverse=False),
)
LOG_ORIGIN = Operator(
    "logarithm",
    lambda x, c: poincare.log_origin(x, c=c),
    cases=_log_cases,
    cpu=_radial(inverse=True),
)
