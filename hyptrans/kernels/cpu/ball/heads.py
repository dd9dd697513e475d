"""One-pass kernels between tangents of the Poincare ball and the points of heads.

Kernels and their numbers as in :mod:`~hyptrans.kernels.cpu.ball.tangents`, heads as in
:mod:`~hyptrans.kernels.cpu.places`.
"""

import math
from typing import Any

import numpy as np

from hyptrans.kernels.cpu.ball.scalars import artanh
from hyptrans.kernels.cpu.exponential import sinh_ratio
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read
from hyptrans.kernels.cpu.places import next_place, place
from hyptrans.kernels.cpu.rows import TILE


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

    Matrices: tangents ``[B T H, d]``, sums ``[B H T, d + 1]``. Integers: B, T, 1, H. Numbers: the
    second is the largest slope of a sum, in place of the largest norm.
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
            time = one if time < least else time
            ratio = artanh(scales[k] / (time * time), bound, epsilon, one)[0]
            scales[k] = ratio / (unit * time)
        t, n = place(start, job.integers)
        for k in range(tile):
            scale = scales[k]
            for j in range(d):
                out[n, j] = scale * total[start + k, j + 1]
            t, n = next_place(start + k, t, n, job.integers)


def centroid_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`centroid_forward`.

    Matrices: gradient of the tangents, sums, gradient of the sums. Integers and numbers as there.
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
            time = one if times[k] < least else times[k]
            squared = squares[k] / (time * time)
            ratio, slope = artanh(squared, bound, epsilon, one)
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
