"""Numbers of all heads to points of each head, and sums of each head's points to numbers of all.

Hyperbolic attention reads points from a matrix product and writes numbers for the next one. Points
stand by heads, numbers by positions, and the kernels for the CPU change from one order to the other
as they go. An operator is a function of the squared length of a row. CUDA has no such kernels yet.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.kernels.cpu import BLOCK, TILE, blocks_of, inlined, matrix, read, run
from hyptrans.kernels.operator import Draw, Grads, Kept, Made


def cut(numbers: Tensor, heads: int) -> Tensor:
    """Numbers in equal parts: ``[B, T, P, H n]`` -> ``[P, B, H, T, n]``."""
    return numbers.unflatten(-1, (heads, -1)).permute(2, 0, 3, 1, 4)


@inlined
def place(row: int, sizes: Any) -> Any:
    """The position of a row of ``[P B H T]``, and where the same one is in ``[B T P H]``."""
    batch, length, projections, heads = sizes[0], sizes[1], sizes[2], sizes[3]
    t, rest = row % length, row // length
    h, rest = rest % heads, rest // heads
    b, p = rest % batch, rest // batch
    return t, ((b * length + t) * projections + p) * heads + h


@inlined
def next_place(row: int, t: int, n: int, sizes: Any) -> Any:
    """What :func:`place` gives for the row after this one."""
    if t + 1 < sizes[1]:
        return t + 1, n + sizes[2] * sizes[3]
    return place(row + 1, sizes)


@inlined
def points_forward(block: int, pointer: Any, directions: int, scale_and_time: Any) -> None:
    """Numbers of heads to points, a head's together.

    Matrices: points ``[P B H T, e + 1]``, numbers ``[B T P H, n]``. Integers: B, T, P, H.

    Args:
        block: which rows.
        pointer: the job.
        directions: ``e`` minus ``n``: 0, or -1 where the last number of a row is a radius.
        scale_and_time: the function that a row's squared length and last number go through.
    """
    job = read(pointer)
    out, given = matrix(job, 0), matrix(job, 1)
    rows, last = len(out), given.shape[1] - 1
    zero, width = out.dtype.type(0), given.shape[1] + directions
    scales, times = np.empty((2, TILE), out.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        t, n = place(start, job.integers)
        for k in range(tile):
            squared = zero
            for j in range(width):
                squared += given[n, j] * given[n, j]
                out[start + k, j + 1] = given[n, j]
            scales[k], times[k] = squared, given[n, last]
            t, n = next_place(start + k, t, n, job.integers)
        for k in range(tile):
            scales[k], times[k] = scale_and_time(scales[k], times[k], job.scalars)
        for k in range(tile):
            scale = scales[k]
            for j in range(1, width + 1):
                out[start + k, j] *= scale
            out[start + k, 0] = times[k]


@inlined
def points_backward(block: int, pointer: Any, directions: int, gradients: Any) -> None:
    """Gradient of :func:`points_forward`; a block has rows of one projection only.

    Matrices: gradient of the numbers, numbers, and for each projection that of its points.
    Integers: B, T, P, H, blocks of a projection.
    """
    job = read(pointer)
    grad_given, given = matrix(job, 0), matrix(job, 1)
    projection, first = block // job.integers[4], block % job.integers[4] * BLOCK
    grad = matrix(job, 2 + projection)
    rows, last, before = len(grad), given.shape[1] - 1, projection * len(grad)
    zero, width = grad.dtype.type(0), given.shape[1] + directions
    scales, alongs, radii, times = np.empty((4, TILE), grad.dtype)
    for start in range(first, min(first + BLOCK, rows), TILE):
        tile = min(TILE, min(first + BLOCK, rows) - start)
        t, n = place(before + start, job.integers)
        for k in range(tile):
            squared, along = zero, zero
            for j in range(width):
                squared += given[n, j] * given[n, j]
                along += given[n, j] * grad[start + k, j + 1]
            scales[k], alongs[k] = squared, along
            radii[k], times[k] = given[n, last], grad[start + k, 0]
            t, n = next_place(before + start + k, t, n, job.integers)
        for k in range(tile):
            scales[k], alongs[k], radii[k] = gradients(
                scales[k], alongs[k], radii[k], times[k], job.scalars
            )
        t, n = place(before + start, job.integers)
        for k in range(tile):
            scale, along = scales[k], alongs[k]
            for j in range(width):
                grad_given[n, j] = scale * grad[start + k, j + 1] + along * given[n, j]
            if directions:
                grad_given[n, last] = radii[k]
            t, n = next_place(before + start + k, t, n, job.integers)


@inlined
def numbers_forward(block: int, pointer: Any, scale: Any) -> None:
    """Sums of points of heads to multiples of their space parts, a position's together.

    Matrices: numbers ``[B T H, d]``, sums ``[B H T, d + 1]``. Integers: B, T, 1, H. The function
    ``scale`` has the factor, of a sum's squared space part and its time.
    """
    job = read(pointer)
    out, total = matrix(job, 0), matrix(job, 1)
    (rows, d), zero, scales = out.shape, out.dtype.type(0), np.empty(TILE, out.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            squared = zero
            for j in range(1, d + 1):
                squared += total[start + k, j] * total[start + k, j]
            scales[k] = squared
        for k in range(tile):
            scales[k] = scale(scales[k], total[start + k, 0], job.scalars)
        t, n = place(start, job.integers)
        for k in range(tile):
            factor = scales[k]
            for j in range(d):
                out[n, j] = factor * total[start + k, j + 1]
            t, n = next_place(start + k, t, n, job.integers)


@inlined
def numbers_backward(block: int, pointer: Any, gradients: Any) -> None:
    """Gradient of :func:`numbers_forward`.

    Matrices: gradient of the numbers, sums, gradient of the sums. Integers as there.
    """
    job = read(pointer)
    grad, total, grad_total = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    (rows, d), zero = grad.shape, grad.dtype.type(0)
    scales, alongs, times = np.empty((3, TILE), grad.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        t, n = place(start, job.integers)
        for k in range(tile):
            squared, along = zero, zero
            for j in range(d):
                squared += total[start + k, j + 1] * total[start + k, j + 1]
                along += total[start + k, j + 1] * grad[n, j]
            scales[k], alongs[k], times[k] = squared, along, total[start + k, 0]
            t, n = next_place(start + k, t, n, job.integers)
        for k in range(tile):
            scales[k], alongs[k], times[k] = gradients(scales[k], alongs[k], times[k], job.scalars)
        t, n = place(start, job.integers)
        for k in range(tile):
            factor, along = scales[k], alongs[k]
            for j in range(d):
                grad_total[start + k, j + 1] = factor * grad[n, j] + along * total[start + k, j + 1]
            grad_total[start + k, 0] = times[k]
            t, n = next_place(start + k, t, n, job.integers)


def made_points(
    kernel: Any, given: Tensor, heads: int, scalars: tuple[float, ...], more: int
) -> tuple[Made, Kept]:
    """Points of each head, which have ``more`` numbers than what they are made of."""
    given = given.contiguous()
    batch, length, projections, width = given.shape
    sizes, size = (batch, length, projections, heads), width // heads
    out = given.new_empty(projections, batch, heads, length, size + more)
    run(kernel, blocks_of(out), (out, given.view(-1, size)), scalars, sizes)
    return out.unbind(), (given, sizes, scalars)


def gradient_of_points(kernel: Any, kept: Kept, grads: tuple[Tensor, ...]) -> Grads:
    """The gradient of what :func:`made_points` was given."""
    given, sizes, scalars = kept
    out, rows = torch.empty_like(given), (-1, given.size(-1) // sizes[3])
    each, grads = blocks_of(grads[0]), tuple(grad.contiguous() for grad in grads)
    matrices = (out.view(rows), given.view(rows), *grads)
    run(kernel, each * len(grads), matrices, scalars, (*sizes, each))
    return (out,)


def made_numbers(kernel: Any, total: Tensor, scalars: tuple[float, ...]) -> tuple[Made, Kept]:
    """Numbers of all heads, from points of each: ``[B, H, T, d + 1]`` -> ``[B, H, T, d]``."""
    total = total.contiguous()
    batch, heads, length, width = total.shape
    out, sizes = total.new_empty(batch, length, heads, width - 1), (batch, length, 1, heads)
    run(kernel, blocks_of(out), (out, total), scalars, sizes)
    return out.transpose(1, 2), (total, sizes, scalars)


def gradient_of_numbers(kernel: Any, kept: Kept, grad: Tensor) -> Grads:
    """The gradient of what :func:`made_numbers` was given."""
    total, sizes, scalars = kept
    out, grad = torch.empty_like(total), grad.transpose(1, 2).contiguous()
    run(kernel, blocks_of(total), (grad, total, out), scalars, sizes)
    return (out,)


def sums_of_points(draw: Draw) -> Tensor:
    """Points of heads for cases, in place of sums, which have the same direction."""
    batch, length = draw.batch
    return lorentz.lift(draw(batch, length, 2, draw.width)).transpose(1, 2)
