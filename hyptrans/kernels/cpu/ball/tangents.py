"""One-pass kernels for tangents at the origin of the Poincare ball.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`; the formulas are those of
:mod:`hyptrans.geometry.poincare`, their gradients written out by hand. What a row's squared length
comes to is computed for many rows together, as vector code. Numbers of all kernels: the ball's
``c``, the largest norm in the unit ball, the unit of rounding, and the least time of a sum.
"""

from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.ball.scalars import artanh, by_lengths, shares, tanh
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read
from hyptrans.kernels.cpu.rows import TILE


def add_forward(block: int, pointer: Any) -> None:
    """Mobius addition of rows ``[N, d]`` and as many, or of each of ``R`` rows to every ``R``-th.

    Matrices: rows, what is added ``[N or R, d]``, sums. Integers: whether ReLU follows.
    """
    job = read(pointer)
    u, v, out = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    c, bound, epsilon = job.numbers[0], job.numbers[1], job.numbers[2]
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
    """Gradient of :func:`add_forward` without ReLU.

    Matrices: gradient of the sums, rows, what is added, gradient of the rows, gradient of what is
    added ``[N, d]``, or ``partial`` ``[blocks, R d]``.
    """
    _add_backward(block, pointer, False)


def relu_add_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`add_forward` with ReLU; one more matrix: what came out."""
    _add_backward(block, pointer, True)


@njit(inline="always")
def _add_backward(block: int, pointer: Any, relu: bool) -> None:
    job = read(pointer)
    grad, u, v = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    grad_u, grad_v = matrix(job, 3), matrix(job, 4)
    made = matrix(job, 5) if relu else u
    c, bound, epsilon = job.numbers[0], job.numbers[1], job.numbers[2]
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


@njit(inline="always")
def _through(grad: float, made: float, relu: bool, zero: float) -> float:
    """A gradient behind ReLU, if it is there."""
    return grad if not relu or made > zero else zero


def radial_forward(block: int, pointer: Any) -> None:
    """Exponential map at the origin of rows ``[N, d]``, or its inverse.

    Matrices: rows, what comes of them. Integers: whether it is the inverse.
    """
    job = read(pointer)
    u, out = matrix(job, 0), matrix(job, 1)
    c, bound, epsilon = job.numbers[0], job.numbers[1], job.numbers[2]
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
    c, bound, epsilon = job.numbers[0], job.numbers[1], job.numbers[2]
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
