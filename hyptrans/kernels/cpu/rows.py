"""One-pass kernels for the CPU, compiled by numba at their first call and kept in its cache.

Every kernel computes one block, ``BLOCK`` rows, of a job (:mod:`~hyptrans.kernels.cpu.jobs`); sums
over rows go to one row of ``partial`` per block, so that no result depends on the number of
threads. The formulas are those of :mod:`hyptrans.geometry`; gradients are written out by hand.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.exponential import exp
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read

TILE = 64
"""Rows worked on at a time, a part of a block: few enough to stay in the cache."""


def points_forward(block: int, pointer: Any) -> None:
    """Numbers to points; those of the first projection as ``factor (-t, s)`` if there is a factor.

    Matrices: z ``[N P H, d]``, residual ``[N, d]`` (where P = H = 1) or none, log scales
    ``[1, P]``, factor ``[1, 1]`` or none, points. Numbers: least time, 1/c, epsilon, and how much
    of the residual's time counts (0 or 1). Integers: H.
    """
    job = read(pointer)
    z, residual, log_scale = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    factor, out = matrix(job, 3), matrix(job, 4)
    least, inverse_c, epsilon, counts = _four(job.numbers)
    heads, projections = job.integers[0], log_scale.shape[1]
    rows, d = z.shape
    zero, one = z.dtype.type(0), z.dtype.type(1)
    scale = np.exp(log_scale[0])
    times, squares, scales, time_factors, space_factors = np.empty((5, TILE), z.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        head, p = start % heads, start // heads % projections
        for k in range(tile):
            n = start + k
            squared, time = zero, z[n, 0]
            scales[k], time_factors[k], space_factors[k] = scale[p], one, one
            if p == 0 and factor.shape[0]:
                time_factors[k], space_factors[k] = -factor[0, 0], factor[0, 0]
            head += 1
            if head == heads:
                head, p = 0, (p + 1 if p + 1 < projections else 0)
            if residual.shape[0]:
                time += counts * residual[n, 0]
                for j in range(1, d):
                    out[n, j] = z[n, j] + residual[n, j]
                    squared += out[n, j] * out[n, j]
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
            squares[k], times[k] = squared, time
        # the roots and quotients of many rows overlap, those of one wait for each other
        for k in range(tile):
            time = scales[k] / (one + exp(-times[k])) + least
            ratio = (time * time - inverse_c) / (squares[k] + epsilon)
            times[k] = time_factors[k] * math.sqrt(squares[k] * ratio + inverse_c)
            space_factors[k] *= math.sqrt(ratio)
        for k in range(tile):
            n, space_scale = start + k, space_factors[k]
            if residual.shape[0]:
                for j in range(d):
                    out[n, j] *= space_scale
            else:
                for j in range(d):
                    out[n, j] = z[n, j] * space_scale
            out[n, 0] = times[k]


def points_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`points_forward`; a block has rows of one projection only.

    Matrices: gradient of z, z, residual, log scales, factor, ``partial`` ``[blocks, 2]`` (gradients
    of the log scale and of the factor), and for each projection the gradient of its points
    ``[N H, d]``. Numbers and integers as there.
    """
    job = read(pointer)
    grad_z, z, residual = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    log_scale, factor, partial = matrix(job, 3), matrix(job, 4), matrix(job, 5)
    least, inverse_c, epsilon, counts = _four(job.numbers)
    heads, projections = job.integers[0], log_scale.shape[1]
    blocks_each = partial.shape[0] // projections
    projection, first = block // blocks_each, block % blocks_each * BLOCK
    grad = matrix(job, 6 + projection)
    rows, d = grad.shape
    zero, half, one = z.dtype.type(0), z.dtype.type(0.5), z.dtype.type(1)
    scale = math.exp(log_scale[0, projection])
    queries = projection == 0 and factor.shape[0] > 0
    # rows of z between those of this projection
    others, before = (projections - 1) * heads, projection * heads
    squares, alongs, times, space_scales, by_squares, grad_times = np.empty((6, TILE), z.dtype)
    time_factor, space_factor = one, one
    if queries:
        time_factor, space_factor = -factor[0, 0], factor[0, 0]
    sum_scale, sum_factor = zero, zero
    for start in range(first, min(first + BLOCK, rows), TILE):
        tile = min(TILE, min(first + BLOCK, rows) - start)
        head, n = start % heads, start + start // heads * others + before
        for k in range(tile):
            g = start + k
            squared, along, time = zero, zero, z[n, 0]
            if residual.shape[0]:
                time += counts * residual[n, 0]
                for j in range(1, d):
                    value = z[n, j] + residual[n, j]
                    squared += value * value
                    along += value * grad[g, j]
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
                    along += z[n, j] * grad[g, j]
            squares[k], alongs[k], times[k], grad_times[k] = squared, along, time, grad[g, 0]
            head, n = _next(head, n, heads, others)
        by_scale, by_factor = zero, zero
        # nothing here but numbers of the tile, without a choice: it becomes vector code
        for k in range(tile):
            squared, along, grad_time = squares[k], alongs[k], grad_times[k]
            sigmoid = one / (one + exp(-times[k]))
            time = scale * sigmoid + least
            inverse = one / (squared + epsilon)
            ratio = (time * time - inverse_c) * inverse
            root = math.sqrt(ratio)
            out_time = math.sqrt(squared * ratio + inverse_c)
            by_factor += along * root - grad_time * out_time
            grad_time *= time_factor
            along *= space_factor
            space_scales[k] = root * space_factor
            by_time = grad_time / out_time
            by_ratio = half * (along / root + by_time * squared)
            by_squares[k] = by_time * ratio - (by_ratio + by_ratio) * ratio * inverse
            by_time = (by_ratio + by_ratio) * time * inverse * scale * sigmoid
            times[k] = by_time * (one - sigmoid)
            by_scale += by_time
        sum_scale += by_scale
        sum_factor += by_factor
        head, n = start % heads, start + start // heads * others + before
        for k in range(tile):
            g = start + k
            space_scale, by_squared = space_scales[k], by_squares[k]
            if residual.shape[0]:
                for j in range(d):
                    value = z[n, j] + residual[n, j]
                    grad_z[n, j] = grad[g, j] * space_scale + by_squared * value
            else:
                for j in range(d):
                    grad_z[n, j] = grad[g, j] * space_scale + by_squared * z[n, j]
            grad_z[n, 0] = times[k]
            head, n = _next(head, n, heads, others)
    partial[block, 0], partial[block, 1] = sum_scale, sum_factor


def normalize_forward(block: int, pointer: Any) -> None:
    """Rows ``[N, d]`` onto the hyperboloid.

    Matrices: vectors, points. Numbers: 1/c, relative floor of ``|v|_L^2``.
    """
    job = read(pointer)
    v, out = matrix(job, 0), matrix(job, 1)
    inverse_c, floor = job.numbers[0], job.numbers[1]
    rows, d = v.shape
    zero = v.dtype.type(0)
    squares, scales = np.empty((2, TILE), v.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            squared = zero
            for j in range(1, d):
                squared += v[start + k, j] * v[start + k, j]
            squares[k] = squared
        for k in range(tile):
            squared = v[start + k, 0] * v[start + k, 0]
            scales[k] = math.sqrt(inverse_c / max(squared - squares[k], floor * squared))
            squares[k] = math.sqrt(squares[k] * scales[k] * scales[k] + inverse_c)
        for k in range(tile):
            scale = scales[k]
            for j in range(d):
                out[start + k, j] = v[start + k, j] * scale
            out[start + k, 0] = squares[k]


def normalize_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`normalize_forward`.

    Matrices: gradient of the points, vectors, gradient of the vectors, ``partial`` ``[blocks, 1]``
    (of 1/c). Numbers as there.
    """
    job = read(pointer)
    grad, v, grad_v, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    inverse_c, floor = job.numbers[0], job.numbers[1]
    rows, d = v.shape
    zero, half = v.dtype.type(0), v.dtype.type(0.5)
    squares, alongs, scales, own, times, grad_times = np.empty((6, TILE), v.dtype)
    sum_inverse = zero
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n = start + k
            squared, along = zero, zero
            for j in range(1, d):
                squared += v[n, j] * v[n, j]
                along += v[n, j] * grad[n, j]
            squares[k], alongs[k] = squared, along
            times[k], grad_times[k] = v[n, 0], grad[n, 0]
        by_inverse = zero
        for k in range(tile):
            squared = times[k] * times[k]
            length = max(squared - squares[k], floor * squared)
            scale = math.sqrt(inverse_c / length)
            # of the space part: its own gradient and that of the time, which follows from it
            by_time = grad_times[k] / math.sqrt(squares[k] * scale * scale + inverse_c)
            along = alongs[k] * scale + by_time * squares[k] * scale * scale
            by_inverse += half * (along / inverse_c + by_time)
            along /= length
            time_like = length > floor * squared
            scales[k], own[k] = scale, by_time * scale * scale + (along if time_like else zero)
            squares[k] = along if time_like else along * floor
        sum_inverse += by_inverse
        for k in range(tile):
            n, scale, share = start + k, scales[k], own[k]
            for j in range(d):
                grad_v[n, j] = scale * grad[n, j] + share * v[n, j]
            grad_v[n, 0] = -squares[k] * times[k]
    partial[block, 0] = sum_inverse


def lift_forward(block: int, pointer: Any) -> None:
    """Rows ``[N, d - 1]`` to points. Matrices: points, rows. Numbers: 1/c."""
    job = read(pointer)
    out, space = matrix(job, 0), matrix(job, 1)
    rows, d = out.shape
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        squared = job.numbers[0]
        for j in range(d - 1):
            squared += space[n, j] * space[n, j]
            out[n, j + 1] = space[n, j]
        out[n, 0] = math.sqrt(squared)


def lift_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`lift_forward`.

    Matrices: gradient of the points, points, gradient of the rows, ``partial`` ``[blocks, 1]`` (of
    1/c).
    """
    job = read(pointer)
    grad, out, grad_space, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    rows, d = out.shape
    half, by_inverse = out.dtype.type(0.5), out.dtype.type(0)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        by_time = grad[n, 0] / out[n, 0]
        for j in range(1, d):
            grad_space[n, j - 1] = grad[n, j] + by_time * out[n, j]
        by_inverse += half * by_time
    partial[block, 0] = by_inverse


@njit(inline="always")
def _next(head: int, row: int, heads: int, others: int) -> Any:
    """The next head of a projection, and its row among those of all projections."""
    if head + 1 < heads:
        return head + 1, row + 1
    return 0, row + 1 + others


@njit(inline="always")
def _four(numbers: Any) -> Any:
    return numbers[0], numbers[1], numbers[2], numbers[3]
