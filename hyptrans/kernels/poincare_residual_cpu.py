"""CPU kernels of :mod:`hyptrans.kernels.poincare_residual`.

Scalars of both: the ball's ``c``, the largest norm in the unit ball, the unit of rounding, a
variance's epsilon, the unit of the norm's gain and shift, and the factor of numbers that dropout
keeps. Integers: dropout's seed and threshold.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from hyptrans.kernels.backend import BLOCK
from hyptrans.kernels.cpu import inlined, matrix, read
from hyptrans.kernels.dropout import fill_kept
from hyptrans.kernels.poincare import artanh, by_lengths, shares, tanh

FEW = 32
"""Rows processed at a time: few enough for intermediate results to stay in the cache."""


class Tile(NamedTuple):
    """Intermediate results of a kernel, row by row; names in ``2`` are c times a squared length."""

    z2: Any
    """c times the squared length of the results of the matrix product."""
    zb: Any
    """c times the dot products of these results and the bias."""
    x2: Any
    """c times the squared length of the points."""
    update2: Any
    """c times the squared length of the updates: the sums of results and bias after dropout."""
    xu: Any
    """c times the dot products of points and updates."""
    ratio: Any
    """A point's tangent divided by the point."""
    slope: Any
    """The derivative of ``ratio`` by ``x2``."""
    of_x: Any
    """The factor of a point in the sum of point and update."""
    of_update: Any
    updates: Any
    """The updates' rows."""
    kept: Any
    """Rows of dropout's factors."""


def forward(block: int, pointer: Any) -> None:
    """Compute new points from points and the results of a matrix product.

    Matrices: points ``[N, d]``, results ``[N, d]``, their bias ``[1, d]``, beta ``[1, 1]``, gain
    and shift of the norm ``[1, d]``, new points.
    """
    job = read(pointer)
    x, z, bias, beta = matrix(job, 0), matrix(job, 1), matrix(job, 2)[0], matrix(job, 3)[0, 0]
    out, one = matrix(job, 6), x.dtype.type(1)
    rows, d = x.shape
    c, bound, epsilon, least = job.scalars[0], job.scalars[1], job.scalars[2], job.scalars[3]
    tile, ratios = _tile(x), np.empty(FEW, x.dtype)
    gain, shift = job.scalars[4] * matrix(job, 4)[0], job.scalars[4] * matrix(job, 5)[0]
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), FEW):
        end = min(start + FEW, min((block + 1) * BLOCK, rows))
        _sums(job, x, z, bias, beta, start, end, tile)
        for k in range(end - start):
            row = out[start + k]
            slope = _center(row, x[start + k], tile, k, least)
            squared = one - one
            for j in range(d):
                value = row[j] * slope * gain[j] + shift[j]
                row[j] = value
                squared += value * value
            ratios[k] = c * squared
        for k in range(end - start):
            ratios[k] = tanh(ratios[k], bound, epsilon, one)[0]
        for k in range(end - start):
            row, ratio = out[start + k], ratios[k]
            for j in range(d):
                row[j] *= ratio


def backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`forward`.

    Matrices: gradient of the new points, points, results, bias, beta, gain, shift, gradient of the
    points, gradient of the results, ``partial`` ``[blocks, 3 d + 1]`` (of bias, gain, shift, beta).
    """
    job = read(pointer)
    grad, x, z, bias = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)[0]
    beta, unit = matrix(job, 4)[0, 0], job.scalars[4]
    grad_x, grad_z, partial = matrix(job, 7), matrix(job, 8), matrix(job, 9)
    rows, d = x.shape
    by_beta = x.dtype.type(0)
    by_bias, by_gain, by_shift = np.zeros(d, x.dtype), np.zeros(d, x.dtype), np.zeros(d, x.dtype)
    # separate arrays, so that the compiler sees that they do not overlap
    tile, totals = _tile(x), np.empty((FEW, d), x.dtype)
    gain, shift = unit * matrix(job, 5)[0], unit * matrix(job, 6)[0]
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), FEW):
        end = min(start + FEW, min((block + 1) * BLOCK, rows))
        rows_of_x, rows_of_grad = x[start:end], grad[start:end]
        _sums(job, x, z, bias, beta, start, end, tile)
        _by_norm(job, rows_of_x, gain, shift, rows_of_grad, totals, by_gain, by_shift, tile)
        by_beta += _by_sum(job, rows_of_x, beta, totals, grad_x[start:end], tile)
        _by_update(job, z[start:end], bias, totals, grad_z[start:end], by_bias, tile)
    for j in range(d):
        partial[block, j] = by_bias[j]
        partial[block, d + j] = unit * by_gain[j]
        partial[block, 2 * d + j] = unit * by_shift[j]
    partial[block, 3 * d] = by_beta


@inlined
def _tile(x: Any) -> Any:
    """Allocate memory for the intermediate results of rows like those of ``x``."""
    z2, zb, x2, update2, xu, ratio, slope, of_x, of_update = np.empty((9, FEW), x.dtype)
    updates, kept = np.empty((FEW, x.shape[1]), x.dtype), np.empty((FEW, x.shape[1]), x.dtype)
    return Tile(z2, zb, x2, update2, xu, ratio, slope, of_x, of_update, updates, kept)


@inlined
def _sums(
    job: Any, x: Any, z: Any, bias: Any, beta: float, start: int, end: int, tile: Any
) -> None:
    """Compute the updates of rows, and the factors of points and updates in their sums."""
    c, bound, epsilon, one = job.scalars[0], job.scalars[1], job.scalars[2], x.dtype.type(1)
    seed, least, factor = job.integers[0], np.uint32(job.integers[1]), job.scalars[5]
    bias2 = c * _product(bias, bias)
    for k in range(end - start):
        tile.x2[k] = c * _product(x[start + k], x[start + k])
        tile.z2[k] = c * _product(z[start + k], z[start + k])
        tile.zb[k] = c * _product(z[start + k], bias)
    for k in range(end - start):
        tile.of_x[k], tile.of_update[k] = shares(tile.z2[k], bias2, tile.zb[k], bound, epsilon, one)
        tile.ratio[k], tile.slope[k] = artanh(tile.x2[k], bound, epsilon, one)
    for k in range(end - start):
        row, update, kept = z[start + k], tile.updates[k], tile.kept[k]
        of_z, of_bias = tile.of_x[k], tile.of_update[k]
        fill_kept(kept, seed, start + k, least, factor)
        for j in range(row.size):
            update[j] = kept[j] * (of_z * row[j] + of_bias * bias[j])
        tile.update2[k] = c * _product(update, update)
        tile.xu[k] = c * _product(update, x[start + k])
    for k in range(end - start):
        ratio, v2 = tile.ratio[k], beta * beta * tile.update2[k]
        uv = beta * ratio * tile.xu[k]
        share, other = shares(ratio * ratio * tile.x2[k], v2, uv, bound, epsilon, one)
        tile.of_x[k], tile.of_update[k] = share * ratio, other * beta


@inlined
def _by_norm(
    job: Any,
    x: Any,
    gain: Any,
    shift: Any,
    grad: Any,
    totals: Any,
    by_gain: Any,
    by_shift: Any,
    tile: Any,
) -> None:
    """Write the gradient before the norm into ``totals``; add to those of gain and shift."""
    c, bound, epsilon, least = job.scalars[0], job.scalars[1], job.scalars[2], job.scalars[3]
    one, d = x.dtype.type(1), x.shape[1]
    scales, ratios, alongs = np.empty((3, FEW), x.dtype)
    behind = np.empty(d, x.dtype)
    for k in range(len(x)):
        total, squared, along = totals[k], one - one, one - one
        scales[k] = _center(total, x[k], tile, k, least)
        for j in range(d):
            total[j] *= scales[k]
        for j in range(d):
            normed = total[j] * gain[j] + shift[j]
            squared += normed * normed
            along += normed * grad[k, j]
        ratios[k], alongs[k] = c * squared, (c + c) * along
    for k in range(len(x)):
        ratios[k], slope = tanh(ratios[k], bound, epsilon, one)
        alongs[k] *= slope
    for k in range(len(x)):
        total, ratio, along = totals[k], ratios[k], alongs[k]
        for j in range(d):
            behind[j] = ratio * grad[k, j] + along * (total[j] * gain[j] + shift[j])
        for j in range(d):
            by_gain[j] += behind[j] * total[j]
            by_shift[j] += behind[j]
        level, tilt, part = one - one, one - one, one / x.dtype.type(d)
        for j in range(d):
            value = behind[j] * gain[j]
            level += value
            tilt += value * total[j]
        level, tilt = level * part, tilt * part
        for j in range(d):
            total[j] = scales[k] * (behind[j] * gain[j] - level - tilt * total[j])


@inlined
def _by_sum(job: Any, x: Any, beta: float, totals: Any, grad_x: Any, tile: Any) -> Any:
    """Write the gradient of points, and that of updates into ``totals``; return that of beta."""
    c, bound, epsilon, one = job.scalars[0], job.scalars[1], job.scalars[2], x.dtype.type(1)
    by_beta = one - one
    along_x, along_update, by_x2, by_update2, by_xu = np.empty((5, FEW), x.dtype)
    for k in range(len(x)):
        along_x[k] = _product(totals[k], x[k])
        along_update[k] = _product(totals[k], tile.updates[k])
    for k in range(len(x)):
        # for the sum of u = ratio x and v = beta update; by_u2 etc. are derivatives by c times dot
        # products
        ratio, x2, update2, xu = tile.ratio[k], tile.x2[k], tile.update2[k], tile.xu[k]
        share, other, by_u2, by_v2, by_uv = by_lengths(
            ratio * ratio * x2,
            beta * beta * update2,
            beta * ratio * xu,
            along_x[k] * ratio,
            along_update[k] * beta,
            bound,
            epsilon,
            one,
        )
        by_ratio = share * along_x[k] + (by_u2 + by_u2) * ratio * x2 + by_uv * beta * xu
        by_beta += other * along_update[k] + (by_v2 + by_v2) * beta * update2 + by_uv * ratio * xu
        tile.of_x[k], tile.of_update[k] = share * ratio, other * beta
        by_x2[k] = (c + c) * (by_u2 * ratio * ratio + by_ratio * tile.slope[k])
        by_update2[k], by_xu[k] = (c + c) * by_v2 * beta * beta, c * by_uv * ratio * beta
    for k in range(len(x)):
        total, point, update, row = totals[k], x[k], tile.updates[k], grad_x[k]
        for j in range(row.size):
            row[j] = tile.of_x[k] * total[j] + by_x2[k] * point[j] + by_xu[k] * update[j]
        for j in range(row.size):
            of_total = tile.of_update[k] * total[j]
            total[j] = of_total + by_update2[k] * update[j] + by_xu[k] * point[j]
    return by_beta


@inlined
def _by_update(
    job: Any, z: Any, bias: Any, totals: Any, grad_z: Any, by_bias: Any, tile: Any
) -> None:
    """Write the gradient of the matrix product's results; add to that of their bias."""
    c, bound, epsilon, one = job.scalars[0], job.scalars[1], job.scalars[2], z.dtype.type(1)
    bias2 = c * _product(bias, bias)
    of_z, of_bias, by_z2, by_bias2, by_zb = np.empty((5, FEW), z.dtype)
    for k in range(len(z)):
        total, kept = totals[k], tile.kept[k]
        for j in range(total.size):
            total[j] *= kept[j]
        of_z[k], of_bias[k] = _product(total, z[k]), _product(total, bias)
    for k in range(len(z)):
        of_z[k], of_bias[k], by_z2[k], by_bias2[k], by_zb[k] = by_lengths(
            tile.z2[k], bias2, tile.zb[k], of_z[k], of_bias[k], bound, epsilon, one
        )
        by_z2[k], by_bias2[k], by_zb[k] = (c + c) * by_z2[k], (c + c) * by_bias2[k], c * by_zb[k]
    for k in range(len(z)):
        total, row, out = totals[k], z[k], grad_z[k]
        for j in range(total.size):
            out[j] = of_z[k] * total[j] + by_z2[k] * row[j] + by_zb[k] * bias[j]
        for j in range(total.size):
            by_bias[j] += of_bias[k] * total[j] + by_bias2[k] * bias[j] + by_zb[k] * row[j]


@inlined
def _product(x: Any, y: Any) -> Any:
    """Return the dot product of two rows."""
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@inlined
def _center(row: Any, x: Any, tile: Any, k: int, epsilon: float) -> Any:
    """Write the sum of a point and its update, minus the sum's mean, into a row.

    Return the factor that scales the row to a mean square of 1.
    """
    zero, one = row.dtype.type(0), row.dtype.type(1)
    of_x, of_update, update = tile.of_x[k], tile.of_update[k], tile.updates[k]
    part, total, squared = one / row.dtype.type(row.size), zero, zero
    for j in range(row.size):
        value = of_x * x[j] + of_update * update[j]
        row[j] = value
        total += value
    mean = total * part
    for j in range(row.size):
        value = row[j] - mean
        row[j] = value
        squared += value * value
    return one / math.sqrt(squared * part + epsilon)
