"""CPU kernels of :mod:`hyptrans.kernels.lorentz`: points from linear maps and from vectors."""

import math
from typing import Any

import numpy as np

from hyptrans.kernels.backend import BLOCK, TILE
from hyptrans.kernels.cpu import exp, matrix, read


def linear_forward(block: int, pointer: Any) -> None:
    """Map the results of a linear map to points.

    Matrices: z ``[N P H, d]``, residual ``[N, d]`` (if P = H = 1) or none, log scales ``[1, P]``,
    points. Scalars: least time, 1/c, epsilon, and the weight of the residual's time (0 or 1).
    Integers: H.
    """
    job = read(pointer)
    z, residual, log_scale, out = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    least, inverse_c, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    heads, projections = job.integers[0], log_scale.shape[1]
    rows, d = z.shape
    zero, one = z.dtype.type(0), z.dtype.type(1)
    scale = np.exp(log_scale[0])
    times, squares, scales = np.empty((3, TILE), z.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n = start + k
            squared, time = zero, z[n, 0]
            if residual.shape[0]:
                time += job.scalars[3] * residual[n, 0]
                for j in range(1, d):
                    value = z[n, j] + residual[n, j]
                    squared += value * value
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
            squares[k], times[k], scales[k] = squared, time, scale[n // heads % projections]
        # roots and quotients of many rows overlap; within one row each waits for the previous one
        for k in range(tile):
            time = scales[k] / (one + exp(-times[k])) + least
            ratio = (time * time - inverse_c) / (squares[k] + epsilon)
            times[k] = math.sqrt(squares[k] * ratio + inverse_c)
            scales[k] = math.sqrt(ratio)
        for k in range(tile):
            n, space_scale = start + k, scales[k]
            if residual.shape[0]:
                for j in range(d):
                    out[n, j] = (z[n, j] + residual[n, j]) * space_scale
            else:
                for j in range(d):
                    out[n, j] = z[n, j] * space_scale
            out[n, 0] = times[k]


def linear_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`linear_forward`.

    Matrices: gradient of the points, z, residual, log scales, gradient of z, ``partial``
    ``[blocks, P]`` (of the log scales). Scalars and integers as for :func:`linear_forward`.
    """
    job = read(pointer)
    grad, z, residual, log_scale = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    grad_z, partial = matrix(job, 4), matrix(job, 5)
    least, inverse_c, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    heads, projections = job.integers[0], log_scale.shape[1]
    rows, d = z.shape
    zero, half, one = z.dtype.type(0), z.dtype.type(0.5), z.dtype.type(1)
    scale = np.exp(log_scale[0])
    partial[block] = zero
    squares, alongs, times, scales, by_squares, grad_times = np.empty((6, TILE), z.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n = start + k
            squared, along, time = zero, zero, z[n, 0]
            if residual.shape[0]:
                time += job.scalars[3] * residual[n, 0]
                for j in range(1, d):
                    value = z[n, j] + residual[n, j]
                    squared += value * value
                    along += value * grad[n, j]
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
                    along += z[n, j] * grad[n, j]
            squares[k], alongs[k], times[k], grad_times[k] = squared, along, time, grad[n, 0]
            scales[k] = scale[n // heads % projections]
        # without branches and on the tile's numbers alone, this loop becomes vector code
        for k in range(tile):
            squared = squares[k]
            sigmoid = one / (one + exp(-times[k]))
            time = scales[k] * sigmoid + least
            inverse = one / (squared + epsilon)
            ratio = (time * time - inverse_c) * inverse
            root = math.sqrt(ratio)
            by_time = grad_times[k] / math.sqrt(squared * ratio + inverse_c)
            by_ratio = half * (alongs[k] / root + by_time * squared)
            by_squares[k] = by_time * ratio - (by_ratio + by_ratio) * ratio * inverse
            by_time = (by_ratio + by_ratio) * time * inverse * scales[k] * sigmoid
            times[k] = by_time * (one - sigmoid)
            alongs[k] = by_time
            scales[k] = root
        for k in range(tile):
            n, space_scale, by_squared = start + k, scales[k], by_squares[k]
            partial[block, n // heads % projections] += alongs[k]
            if residual.shape[0]:
                for j in range(d):
                    value = z[n, j] + residual[n, j]
                    grad_z[n, j] = grad[n, j] * space_scale + by_squared * value
            else:
                for j in range(d):
                    grad_z[n, j] = grad[n, j] * space_scale + by_squared * z[n, j]
            grad_z[n, 0] = times[k]


def normalize_forward(block: int, pointer: Any) -> None:
    """Scale rows ``[N, d]`` onto the hyperboloid.

    Matrices: vectors, points. Scalars: 1/c, floor of ``1 - |v_s / v_t|^2``.
    """
    job = read(pointer)
    v, out = matrix(job, 0), matrix(job, 1)
    inverse_c, least = job.scalars[0], job.scalars[1]
    rows, d = v.shape
    zero, one = v.dtype.type(0), v.dtype.type(1)
    squares, scales = np.empty((2, TILE), v.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            # the squares of slopes neither underflow nor overflow
            squared, inverse = zero, one / v[start + k, 0]
            for j in range(1, d):
                slope = v[start + k, j] * inverse
                squared += slope * slope
            squares[k], scales[k] = squared, inverse
        for k in range(tile):
            scale = math.sqrt(inverse_c / max(one - squares[k], least))
            squares[k] = math.sqrt(squares[k] * scale * scale + inverse_c)
            scales[k] *= scale
        for k in range(tile):
            scale = scales[k]
            for j in range(d):
                out[start + k, j] = v[start + k, j] * scale
            out[start + k, 0] = squares[k]


def normalize_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`normalize_forward`.

    Matrices: gradient of the points, vectors, gradient of the vectors, ``partial`` ``[blocks, 1]``
    (of c). Scalars as for :func:`normalize_forward`.
    """
    job = read(pointer)
    grad, v, grad_v, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    inverse_c, least = job.scalars[0], job.scalars[1]
    rows, d = v.shape
    zero, half, one = v.dtype.type(0), v.dtype.type(0.5), v.dtype.type(1)
    squares, alongs, inverses, grad_times, scales = np.empty((5, TILE), v.dtype)
    total = zero
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n, squared, along = start + k, zero, zero
            inverse = one / v[n, 0]
            # stored for use below: free to reorder, a compiler would square the inverse there
            for j in range(1, d):
                grad_v[n, j] = v[n, j] * inverse
            for j in range(1, d):
                squared += grad_v[n, j] * grad_v[n, j]
                along += grad_v[n, j] * grad[n, j]
            squares[k], alongs[k], inverses[k], grad_times[k] = squared, along, inverse, grad[n, 0]
        by_inverse_c = zero
        for k in range(tile):
            squared, gap = squares[k], one - squares[k]
            inside = gap > least
            gap = gap if inside else least
            scale = math.sqrt(inverse_c / gap)
            # the space part's own gradient and that through the time, which follows from it
            by_time = grad_times[k] / math.sqrt(squared * scale * scale + inverse_c)
            along = scale * (alongs[k] + by_time * scale * squared)
            by_inverse_c += half * (along / inverse_c + by_time)
            along /= gap if inside else one
            scales[k] = scale * inverses[k]
            share = by_time * scale * scale + (along if inside else zero)
            squares[k], alongs[k] = share * inverses[k], along * inverses[k]
        total += by_inverse_c
        for k in range(tile):
            n, scale, share = start + k, scales[k], squares[k]
            for j in range(1, d):
                grad_v[n, j] = scale * grad[n, j] + share * grad_v[n, j]
            grad_v[n, 0] = -alongs[k]
    partial[block, 0] = -total * inverse_c * inverse_c
