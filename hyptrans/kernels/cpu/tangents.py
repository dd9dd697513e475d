"""One-pass kernels for tangents at the origin of the Poincare ball.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`; the formulas are those of
:mod:`hyptrans.geometry.poincare`, their gradients written out by hand. What a row's squared length
comes to is computed for many rows together, as vector code. Numbers of all kernels: the ball's
``c``, the largest norm in the unit ball, the unit of rounding, and the least time of a sum.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.exponential import log1p, sinh_ratio, tanh_ratio
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read
from hyptrans.kernels.cpu.rows import TILE


def add_forward(block: int, pointer: Any) -> None:
    """Mobius addition of rows ``[N, d]`` and as many, or of each of ``R`` rows to every ``R``-th.

    Matrices: rows, what is added ``[N or R, d]``, sums.
    """
    job = read(pointer)
    u, v, out = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    c, bound, epsilon = job.numbers[0], job.numbers[1], job.numbers[2]
    rows, d = u.shape
    zero, one, added = u.dtype.type(0), u.dtype.type(1), v.shape[0]
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
            of_u[k], of_v[k] = _shares(of_u[k], of_v[k], both[k], bound, epsilon, one)
        for k in range(tile):
            n, m = start + k, (start + k) % added
            share, other = of_u[k], of_v[k]
            for j in range(d):
                out[n, j] = share * u[n, j] + other * v[m, j]


def add_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`add_forward`.

    Matrices: gradient of the sums, rows, what is added, gradient of the rows, gradient of what is
    added ``[N, d]``, or ``partial`` ``[blocks, R d]``.
    """
    job = read(pointer)
    grad, u, v = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    grad_u, grad_v = matrix(job, 3), matrix(job, 4)
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
                along += grad[n, j] * u[n, j]
                other += grad[n, j] * v[m, j]
            u2s[k], v2s[k], uvs[k] = c * u2, c * v2, c * uv
            alongs[k], others[k] = along, other
        for k in range(tile):
            share, other, by_u2, by_v2, by_uv = _by_lengths(
                u2s[k], v2s[k], uvs[k], alongs[k], others[k], bound, epsilon, one
            )
            alongs[k], others[k] = share, other
            u2s[k], v2s[k], uvs[k] = (by_u2 + by_u2) * c, (by_v2 + by_v2) * c, by_uv * c
        for k in range(tile):
            n, m = start + k, (start + k) % added
            share, other, of_u, of_v, across = alongs[k], others[k], u2s[k], v2s[k], uvs[k]
            if each:
                for j in range(d):
                    g, x, y = grad[n, j], u[n, j], v[n, j]
                    grad_u[n, j] = share * g + of_u * x + across * y
                    grad_v[n, j] = other * g + of_v * y + across * x
            else:
                for j in range(d):
                    grad_u[n, j] = share * grad[n, j] + of_u * u[n, j] + across * v[m, j]
                sums = grad_v[block, m * d : (m + 1) * d]
                for j in range(d):
                    sums[j] += other * grad[n, j] + of_v * v[m, j] + across * u[n, j]


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
                squares[k] = _artanh(squares[k], bound, epsilon, one)[0]
        else:
            for k in range(tile):
                squares[k] = _tanh(squares[k], bound, epsilon, one)[0]
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
                squares[k], slope = _artanh(squares[k], bound, epsilon, one)
                alongs[k] *= slope
        else:
            for k in range(tile):
                squares[k], slope = _tanh(squares[k], bound, epsilon, one)
                alongs[k] *= slope
        for k in range(tile):
            ratio, along = squares[k], alongs[k]
            for j in range(d):
                grad_u[start + k, j] = ratio * grad[start + k, j] + along * u[start + k, j]


def lift_forward(block: int, pointer: Any) -> None:
    """Tangents of heads to points of the hyperboloid of curvature -1, a head's together.

    Matrices: points ``[P B H T, d + 1]``, tangents ``[B T P H, d]``. Integers: B, T, P, H.
    """
    job = read(pointer)
    out, u = matrix(job, 0), matrix(job, 1)
    c, epsilon = job.numbers[0], job.numbers[2]
    rows, d = u.shape
    zero, one = u.dtype.type(0), u.dtype.type(1)
    unit = math.sqrt(c)
    unit += unit
    ratios, times = np.empty((2, TILE), u.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        t, n = place(start, job.integers)
        for k in range(tile):
            squared = zero
            for j in range(d):
                squared += u[n, j] * u[n, j]
                out[start + k, j + 1] = u[n, j]
            times[k] = unit * unit * squared
            t, n = next_place(start + k, t, n, job.integers)
        for k in range(tile):
            squared = times[k]
            ratio = sinh_ratio(math.sqrt(squared + epsilon))
            times[k] = math.sqrt(squared * ratio * ratio + one)
            ratios[k] = unit * ratio
        for k in range(tile):
            ratio = ratios[k]
            for j in range(1, d + 1):
                out[start + k, j] *= ratio
            out[start + k, 0] = times[k]


def lift_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`lift_forward`; a block has rows of one projection only.

    Matrices: gradient of the tangents, tangents, and for each projection that of its points.
    Integers: B, T, P, H, blocks of a projection.
    """
    job = read(pointer)
    grad_u, u = matrix(job, 0), matrix(job, 1)
    c, epsilon = job.numbers[0], job.numbers[2]
    projection, first = block // job.integers[4], block % job.integers[4] * BLOCK
    grad = matrix(job, 2 + projection)
    rows, d = grad.shape[0], u.shape[1]
    zero, half, one = u.dtype.type(0), u.dtype.type(0.5), u.dtype.type(1)
    unit = math.sqrt(c)
    unit += unit
    squares, alongs, ratios = np.empty((3, TILE), u.dtype)
    for start in range(first, min(first + BLOCK, rows), TILE):
        tile = min(TILE, min(first + BLOCK, rows) - start)
        before = projection * rows
        t, n = place(before + start, job.integers)
        for k in range(tile):
            squared, along = zero, zero
            for j in range(d):
                squared += u[n, j] * u[n, j]
                along += u[n, j] * grad[start + k, j + 1]
            squares[k], alongs[k] = unit * unit * squared, unit * along
            ratios[k] = grad[start + k, 0]
            t, n = next_place(before + start + k, t, n, job.integers)
        for k in range(tile):
            squared, by_time = squares[k], ratios[k]
            length2 = squared + epsilon
            ratio = sinh_ratio(math.sqrt(length2))
            slope = half * (math.sqrt(one + length2 * ratio * ratio) - ratio) / length2
            time = math.sqrt(squared * ratio * ratio + one)
            by_time *= ratio * (half * ratio + squared * slope) / time
            alongs[k] = (by_time + alongs[k] * slope) * unit * unit
            alongs[k] += alongs[k]
            ratios[k] = unit * ratio
        t, n = place(before + start, job.integers)
        for k in range(tile):
            ratio, along = ratios[k], alongs[k]
            for j in range(d):
                grad_u[n, j] = ratio * grad[start + k, j + 1] + along * u[n, j]
            t, n = next_place(before + start + k, t, n, job.integers)


def centroid_forward(block: int, pointer: Any) -> None:
    """Sums of points of heads to the tangents of their midpoints, a position's together.

    Matrices: tangents ``[B T H, d]``, sums ``[B H T, d + 1]``. Integers: B, T, 1, H.
    """
    job = read(pointer)
    out, total = matrix(job, 0), matrix(job, 1)
    c, bound, epsilon, least = job.numbers[0], job.numbers[1], job.numbers[2], job.numbers[3]
    rows, d = out.shape
    zero, one = out.dtype.type(0), out.dtype.type(1)
    unit = math.sqrt(c)
    unit += unit
    scales = np.empty(TILE, out.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            squared = zero
            for j in range(1, d + 1):
                squared += total[start + k, j] * total[start + k, j]
            scales[k] = squared
        for k in range(tile):
            time = total[start + k, 0]
            time = least if time < least else time
            ratio = _artanh(scales[k] / (time * time), bound, epsilon, one)[0]
            scales[k] = ratio / (unit * time)
        t, n = place(start, job.integers)
        for k in range(tile):
            scale = scales[k]
            for j in range(d):
                out[n, j] = scale * total[start + k, j + 1]
            t, n = next_place(start + k, t, n, job.integers)


def centroid_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`centroid_forward`.

    Matrices: gradient of the tangents, sums, gradient of the sums. Integers as there.
    """
    job = read(pointer)
    grad, total, grad_total = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    c, bound, epsilon, least = job.numbers[0], job.numbers[1], job.numbers[2], job.numbers[3]
    rows, d = grad.shape
    zero, one = grad.dtype.type(0), grad.dtype.type(1)
    unit = math.sqrt(c)
    unit += unit
    squares, alongs, times = np.empty((3, TILE), grad.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        t, n = place(start, job.integers)
        for k in range(tile):
            squared, along = zero, zero
            for j in range(d):
                squared += total[start + k, j + 1] * total[start + k, j + 1]
                along += total[start + k, j + 1] * grad[n, j]
            squares[k], alongs[k], times[k] = squared, along, total[start + k, 0]
            t, n = next_place(start + k, t, n, job.integers)
        for k in range(tile):
            time = least if times[k] < least else times[k]
            squared = squares[k] / (time * time)
            ratio, slope = _artanh(squared, bound, epsilon, one)
            along = alongs[k] / (unit * time * time)
            by_time = along * (ratio + (slope + slope) * squared)
            alongs[k] = along * (slope + slope) / time
            squares[k] = ratio / (unit * time)
            times[k] = zero if times[k] < least else -by_time
        t, n = place(start, job.integers)
        for k in range(tile):
            ratio, along = squares[k], alongs[k]
            for j in range(d):
                grad_total[start + k, j + 1] = ratio * grad[n, j] + along * total[start + k, j + 1]
            grad_total[start + k, 0] = times[k]
            t, n = next_place(start + k, t, n, job.integers)


@njit(inline="always")
def place(row: int, sizes: Any) -> Any:
    """The position of a row of ``[P B H T]``, and where the same one is in ``[B T P H]``."""
    batch, length, projections, heads = sizes[0], sizes[1], sizes[2], sizes[3]
    t, rest = row % length, row // length
    h, rest = rest % heads, rest // heads
    b, p = rest % batch, rest // batch
    return t, ((b * length + t) * projections + p) * heads + h


@njit(inline="always")
def next_place(row: int, t: int, n: int, sizes: Any) -> Any:
    """What :func:`place` gives for the row after this one."""
    if t + 1 < sizes[1]:
        return t + 1, n + sizes[2] * sizes[3]
    return place(row + 1, sizes)


@njit(inline="always")
def _tanh(squared: float, bound: float, epsilon: float, one: float) -> Any:
    """``tanh(a) / a``, clamped, of a squared length ``a^2``, and its derivative by that."""
    squared += epsilon
    length = math.sqrt(squared)
    ratio = tanh_ratio(length)
    most = bound / length
    slope = one - squared * ratio * ratio if ratio < most else one - one
    ratio = ratio if ratio < most else most
    return ratio, (slope - ratio) / (squared + squared)


@njit(inline="always")
def _artanh(squared: float, bound: float, epsilon: float, one: float) -> Any:
    """``artanh(a) / a``, its argument clamped, of a squared norm, and its derivative by that."""
    squared += epsilon
    length = math.sqrt(squared)
    inside = length if length < bound else bound
    ratio = log1p((inside + inside) / (one - inside)) / (length + length)
    slope = one / (one - squared) if length < bound else one - one
    return ratio, (slope - ratio) / (squared + squared)


@njit(inline="always")
def _shares(u2: float, v2: float, uv: float, bound: float, epsilon: float, one: float) -> Any:
    """The factors of two tangents in their sum, from ``c`` times their products."""
    to_x, to_y = _tanh(u2, bound, epsilon, one)[0], _tanh(v2, bound, epsilon, one)[0]
    x2, y2, xy2 = u2 * to_x * to_x, v2 * to_y * to_y, (uv + uv) * to_x * to_y
    denominator = one + xy2 + x2 * y2
    sum2 = (x2 + xy2 + y2) / denominator
    sum2 = one - one if sum2 < one - one else sum2
    scale = _artanh(sum2, bound, epsilon, one)[0] / denominator
    return scale * (one + xy2 + y2) * to_x, scale * (one - x2) * to_y


@njit(inline="always")
def _by_lengths(
    u2: float,
    v2: float,
    uv: float,
    along: float,
    other: float,
    bound: float,
    epsilon: float,
    one: float,
) -> Any:
    """The factors of :func:`_shares`, and what its three arguments get of the gradients of these.

    ``along`` and ``other`` are the gradients of the two factors.
    """
    to_x, x_slope = _tanh(u2, bound, epsilon, one)
    to_y, y_slope = _tanh(v2, bound, epsilon, one)
    x2, y2, xy2 = u2 * to_x * to_x, v2 * to_y * to_y, (uv + uv) * to_x * to_y
    denominator = one + xy2 + x2 * y2
    raw = (x2 + xy2 + y2) / denominator
    sum2 = one - one if raw < one - one else raw
    ratio, slope = _artanh(sum2, bound, epsilon, one)
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
