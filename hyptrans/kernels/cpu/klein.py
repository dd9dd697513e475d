"""One-pass kernels for points read from plain numbers, and their midpoints in Klein coordinates.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`, heads as in
:mod:`~hyptrans.kernels.cpu.places`; the formulas are those of :mod:`hyptrans.geometry.klein`.
"""

import math
from typing import Any

import numpy as np

from hyptrans.kernels.cpu.exponential import sinh_ratio, tanh_ratio
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read
from hyptrans.kernels.cpu.places import next_place, place
from hyptrans.kernels.cpu.rows import TILE

TINY = 1e-30
"""Added to what a ratio divides by; nothing to any other number."""


def polar_forward(block: int, pointer: Any) -> None:
    """Directions and radii of heads to points, a head's together.

    Matrices: points ``[P B H T, d]``, numbers ``[B T P H, d]``, the radius last. Numbers: the
    largest radius, what is added to a length. Integers: B, T, P, H.
    """
    job = read(pointer)
    out, given = matrix(job, 0), matrix(job, 1)
    most, epsilon = job.numbers[0], job.numbers[1]
    rows, d = out.shape
    zero, one, tiny = out.dtype.type(0), out.dtype.type(1), out.dtype.type(TINY)
    lengths, radii = np.empty((2, TILE), out.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        t, n = place(start, job.integers)
        for k in range(tile):
            squared = zero
            for j in range(d - 1):
                squared += given[n, j] * given[n, j]
                out[start + k, j + 1] = given[n, j]
            lengths[k], radii[k] = squared, given[n, d - 1]
            t, n = next_place(start + k, t, n, job.integers)
        for k in range(tile):
            length, radius = math.sqrt(lengths[k]), radii[k]
            radius *= tanh_ratio(abs(radius) / most + tiny)
            radius *= sinh_ratio(abs(radius) + tiny)
            radii[k] = radius / (length + epsilon)
            length *= radii[k]
            lengths[k] = math.sqrt(length * length + one)
        for k in range(tile):
            scale = radii[k]
            for j in range(1, d):
                out[start + k, j] *= scale
            out[start + k, 0] = lengths[k]


def polar_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`polar_forward`; a block has rows of one projection only.

    Matrices: gradient of the numbers, numbers, and for each projection that of its points.
    Numbers as there. Integers: B, T, P, H, blocks of a projection.
    """
    job = read(pointer)
    grad_given, given = matrix(job, 0), matrix(job, 1)
    most, epsilon = job.numbers[0], job.numbers[1]
    projection, first = block // job.integers[4], block % job.integers[4] * BLOCK
    grad = matrix(job, 2 + projection)
    rows, d = grad.shape
    zero, one, tiny = grad.dtype.type(0), grad.dtype.type(1), grad.dtype.type(TINY)
    lengths, radii, alongs, times = np.empty((4, TILE), grad.dtype)
    before = projection * rows
    for start in range(first, min(first + BLOCK, rows), TILE):
        tile = min(TILE, min(first + BLOCK, rows) - start)
        t, n = place(before + start, job.integers)
        for k in range(tile):
            squared, along = zero, zero
            for j in range(d - 1):
                squared += given[n, j] * given[n, j]
                along += given[n, j] * grad[start + k, j + 1]
            lengths[k], alongs[k] = squared, along
            radii[k], times[k] = given[n, d - 1], grad[start + k, 0]
            t, n = next_place(before + start + k, t, n, job.integers)
        for k in range(tile):
            length, radius = math.sqrt(lengths[k]), radii[k]
            share = radius / most
            share *= tanh_ratio(abs(share) + tiny)
            reach = share * most
            reach *= sinh_ratio(abs(reach) + tiny)
            inverse = one / (length + epsilon)
            scale = reach * inverse
            by_space = times[k] * length * scale / math.sqrt(length * length * scale * scale + one)
            by_scale = alongs[k] + by_space * length
            by_length = (by_space - by_scale * inverse) * scale
            by_radius = by_scale * inverse * math.sqrt(one + reach * reach)
            times[k] = by_radius * (one - share * share)
            alongs[k] = by_length / length if length > zero else zero
            radii[k] = scale
        t, n = place(before + start, job.integers)
        for k in range(tile):
            scale, along = radii[k], alongs[k]
            for j in range(d - 1):
                grad_given[n, j] = scale * grad[start + k, j + 1] + along * given[n, j]
            grad_given[n, d - 1] = times[k]
            t, n = next_place(before + start + k, t, n, job.integers)


def midpoint_forward(block: int, pointer: Any) -> None:
    """Sums of points of heads to their midpoints, a position's together.

    Matrices: midpoints ``[B T H, d]``, sums ``[B H T, d + 1]``. Numbers: the least time of a sum.
    Integers: B, T, 1, H.
    """
    job = read(pointer)
    out, total, least = matrix(job, 0), matrix(job, 1), job.numbers[0]
    rows, d = out.shape
    one = out.dtype.type(1)
    start, end = block * BLOCK, min((block + 1) * BLOCK, rows)
    t, n = place(start, job.integers)
    for row in range(start, end):
        time = total[row, 0]
        inverse = one / (one if time < least else time)
        for j in range(d):
            out[n, j] = total[row, j + 1] * inverse
        t, n = next_place(row, t, n, job.integers)


def midpoint_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`midpoint_forward`.

    Matrices: gradient of the midpoints, sums, gradient of the sums. Numbers and integers as there.
    """
    job = read(pointer)
    grad, total, grad_total = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    least, (rows, d) = job.numbers[0], grad.shape
    zero, one = grad.dtype.type(0), grad.dtype.type(1)
    start, end = block * BLOCK, min((block + 1) * BLOCK, rows)
    t, n = place(start, job.integers)
    for row in range(start, end):
        time = total[row, 0]
        inverse = one / (one if time < least else time)
        along = zero
        for j in range(d):
            along += grad[n, j] * total[row, j + 1]
            grad_total[row, j + 1] = grad[n, j] * inverse
        grad_total[row, 0] = zero if time < least else -along * inverse * inverse
        t, n = next_place(row, t, n, job.integers)
