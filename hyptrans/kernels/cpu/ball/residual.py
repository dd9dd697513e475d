"""One-pass kernels for the end of a sublayer of the Poincare ball: bias, residual, norm and map.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`; the formula is
:func:`hyptrans.kernels.ball.residual.plain_norm_residual`. Numbers of both kernels: the ball's
``c``, the largest norm in the unit ball, the unit of rounding, what is added to a variance, the
unit of the norm's gain and shift, and the scale of what dropout keeps. Integers: dropout's seed
and threshold.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.ball.loops import add_three, product, products, sum_of_three, times
from hyptrans.kernels.cpu.ball.scalars import artanh, by_lengths, shares, tanh
from hyptrans.kernels.cpu.dropout import fill_kept
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read

FEW = 32
"""Rows worked on at a time: what is made of them stays in the cache."""

Z2, ZB, X2, V2, XV, RATIO, SLOPE, OF_Z, OF_BIAS, OF_X, OF_UPDATE, SCALE, ALONG, OTHER = range(14)
"""What is known of a tile's rows, ``[14, FEW]``.

c times products of numbers, bias, points and updates; the ratio of a point's tangent to it and
that ratio's slope; the shares of numbers and bias in their sum, of points and updates in theirs,
and of each other in a gradient; what scales a centered row; two products with a gradient.
"""


def forward(block: int, pointer: Any) -> None:
    """Points from points and the numbers of a matrix product.

    Matrices: points ``[N, d]``, numbers ``[N, d]``, their bias ``[1, d]``, beta ``[1, 1]``, gain
    and shift of the norm ``[1, d]``, new points.
    """
    job = read(pointer)
    x, z, bias, beta = matrix(job, 0), matrix(job, 1), matrix(job, 2)[0], matrix(job, 3)[0, 0]
    out, one = matrix(job, 6), x.dtype.type(1)
    rows, d = x.shape
    c, bound, epsilon, least = job.numbers[0], job.numbers[1], job.numbers[2], job.numbers[3]
    known, ratios = np.empty((14, FEW), x.dtype), np.empty(FEW, x.dtype)
    updates, kept = np.empty((FEW, d), x.dtype), np.empty((FEW, d), x.dtype)
    gain, shift = np.empty(d, x.dtype), np.empty(d, x.dtype)
    times(matrix(job, 4)[0], job.numbers[4], gain)
    times(matrix(job, 5)[0], job.numbers[4], shift)
    bias2 = c * product(bias, bias)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), FEW):
        tile = min(FEW, min((block + 1) * BLOCK, rows) - start)
        _sums(job, x, z, bias, bias2, beta, start, tile, kept, updates, known)
        for k in range(tile):
            row, of_x, of_update = out[start + k], known[OF_X, k], known[OF_UPDATE, k]
            slope = _center(row, x[start + k], updates[k], of_x, of_update, least)
            squared = one - one
            for j in range(d):
                value = row[j] * slope * gain[j] + shift[j]
                row[j] = value
                squared += value * value
            ratios[k] = c * squared
        for k in range(tile):
            ratios[k] = tanh(ratios[k], bound, epsilon, one)[0]
        for k in range(tile):
            row, ratio = out[start + k], ratios[k]
            for j in range(d):
                row[j] *= ratio


def backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`forward`.

    Matrices: gradient of the new points, points, numbers, bias, beta, gain, shift, gradient of the
    points, gradient of the numbers, ``partial`` ``[blocks, 3 d + 1]`` (of bias, gain, shift, beta).
    """
    job = read(pointer)
    grad, x, z, bias = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)[0]
    beta, unit, c = matrix(job, 4)[0, 0], job.numbers[4], job.numbers[0]
    grad_x, grad_z, partial = matrix(job, 7), matrix(job, 8), matrix(job, 9)
    rows, d = x.shape
    by_beta = x.dtype.type(0)
    by_bias, by_gain, by_shift = np.zeros(d, x.dtype), np.zeros(d, x.dtype), np.zeros(d, x.dtype)
    # arrays of their own, so that the compiler sees that they do not overlap
    known = np.empty((14, FEW), x.dtype)
    updates, kept = np.empty((FEW, d), x.dtype), np.empty((FEW, d), x.dtype)
    totals = np.empty((FEW, d), x.dtype)
    gain, shift = np.empty(d, x.dtype), np.empty(d, x.dtype)
    times(matrix(job, 5)[0], unit, gain)
    times(matrix(job, 6)[0], unit, shift)
    bias2 = c * product(bias, bias)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), FEW):
        end = start + min(FEW, min((block + 1) * BLOCK, rows) - start)
        some, points = z[start:end], x[start:end]
        _sums(job, x, z, bias, bias2, beta, start, end - start, kept, updates, known)
        _normed(job, points, updates, gain, shift, grad[start:end], totals, known)
        _by_norm(grad[start:end], gain, shift, totals, grad_z[start:end], by_gain, by_shift, known)
        by_beta += _by_sum(job, points, updates, beta, totals, grad_x[start:end], known)
        _by_update(job, some, bias, bias2, kept, totals, grad_z[start:end], by_bias, known)
    for j in range(d):
        partial[block, j] = by_bias[j]
        partial[block, d + j] = unit * by_gain[j]
        partial[block, 2 * d + j] = unit * by_shift[j]
    partial[block, 3 * d] = by_beta


@njit(inline="always")
def _sums(
    job: Any,
    x: Any,
    z: Any,
    bias: Any,
    bias2: float,
    beta: float,
    start: int,
    tile: int,
    kept: Any,
    updates: Any,
    known: Any,
) -> None:
    """Updates of a tile's rows, and the shares of points and updates in their sums."""
    c, bound, epsilon, one = job.numbers[0], job.numbers[1], job.numbers[2], x.dtype.type(1)
    z2, zb, x2, v2, xv = known[Z2], known[ZB], known[X2], known[V2], known[XV]
    ratio, of_z, of_bias = known[RATIO], known[OF_Z], known[OF_BIAS]
    for k in range(tile):
        x2[k] = c * product(x[start + k], x[start + k])
        z2[k], _, zb[k] = products(z[start + k], bias, c)
    for k in range(tile):
        of_z[k], of_bias[k] = shares(z2[k], bias2, zb[k], bound, epsilon, one)
        ratio[k], known[SLOPE, k] = artanh(x2[k], bound, epsilon, one)
    for k in range(tile):
        n, row = start + k, kept[k]
        fill_kept(row, job.integers[0], n, np.uint32(job.integers[1]), job.numbers[5])
        v2[k], xv[k] = _update(x[n], z[n], bias, of_z[k], of_bias[k], row, updates[k], c)
    for k in range(tile):
        u2, uv = ratio[k] * ratio[k] * x2[k], beta * ratio[k] * xv[k]
        share, other = shares(u2, beta * beta * v2[k], uv, bound, epsilon, one)
        known[OF_X, k], known[OF_UPDATE, k] = share * ratio[k], other * beta


@njit(inline="always")
def _normed(
    job: Any, x: Any, updates: Any, gain: Any, shift: Any, grad: Any, totals: Any, known: Any
) -> None:
    """Centered rows of length one a number; what of the gradient passes the last map."""
    c, bound, epsilon, least = job.numbers[0], job.numbers[1], job.numbers[2], job.numbers[3]
    ratio, along, one = known[OF_X], known[ALONG], x.dtype.type(1)
    for k in range(len(x)):
        total, of_x, of_update = totals[k], known[OF_X, k], known[OF_UPDATE, k]
        known[SCALE, k] = _center(total, x[k], updates[k], of_x, of_update, least)
        ratio[k], along[k] = _lengths(total, known[SCALE, k], gain, shift, grad[k], c)
    for k in range(len(x)):
        ratio[k], slope = tanh(ratio[k], bound, epsilon, one)
        along[k] *= slope


@njit(inline="always")
def _by_norm(
    grad: Any,
    gain: Any,
    shift: Any,
    totals: Any,
    grad_z: Any,
    by_gain: Any,
    by_shift: Any,
    known: Any,
) -> None:
    """The gradient before the norm into ``totals``, and that of gain and shift."""
    for k in range(len(grad)):
        total, behind, ratio, along = totals[k], grad_z[k], known[OF_X, k], known[ALONG, k]
        for j in range(total.size):
            behind[j] = ratio * grad[k, j] + along * (total[j] * gain[j] + shift[j])
        for j in range(total.size):
            by_gain[j] += behind[j] * total[j]
            by_shift[j] += behind[j]
        _by_center(behind, total, gain, known[SCALE, k])


@njit(inline="always")
def _by_sum(
    job: Any, x: Any, updates: Any, beta: float, totals: Any, grad_x: Any, known: Any
) -> Any:
    """The gradient of points, that of updates into ``totals``; return that of beta."""
    c, bound, epsilon, one = job.numbers[0], job.numbers[1], job.numbers[2], x.dtype.type(1)
    x2s, v2s, across = known[X2], known[V2], known[SCALE]
    of_x, of_update, along, other = known[OF_X], known[OF_UPDATE], known[ALONG], known[OTHER]
    by_beta = one - one
    for k in range(len(x)):
        along[k], other[k] = product(totals[k], x[k]), product(totals[k], updates[k])
    for k in range(len(x)):
        # the sum of u = ratio x and v = beta update; by_u2 and the like are by c times products
        ratio, x2, v2, xv = known[RATIO, k], x2s[k], v2s[k], known[XV, k]
        u2, uv, by_share, by_other = ratio * ratio * x2, beta * ratio * xv, along[k], other[k]
        share, update_share, by_u2, by_v2, by_uv = by_lengths(
            u2, beta * beta * v2, uv, by_share * ratio, by_other * beta, bound, epsilon, one
        )
        by_ratio = share * by_share + (by_u2 + by_u2) * ratio * x2 + by_uv * beta * xv
        by_beta += update_share * by_other + (by_v2 + by_v2) * beta * v2 + by_uv * ratio * xv
        of_x[k], of_update[k] = share * ratio, update_share * beta
        x2s[k] = (c + c) * (by_u2 * ratio * ratio + by_ratio * known[SLOPE, k])
        v2s[k], across[k] = (c + c) * by_v2 * beta * beta, c * by_uv * ratio * beta
    for k in range(len(x)):
        total, update = totals[k], updates[k]
        sum_of_three(of_x[k], total, x2s[k], x[k], across[k], update, grad_x[k])
        sum_of_three(of_update[k], total, v2s[k], update, across[k], x[k], total)
    return by_beta


@njit(inline="always")
def _by_update(
    job: Any,
    z: Any,
    bias: Any,
    bias2: float,
    kept: Any,
    totals: Any,
    grad_z: Any,
    by_bias: Any,
    known: Any,
) -> None:
    """The gradient of numbers, and that of their bias."""
    c, bound, epsilon, one = job.numbers[0], job.numbers[1], job.numbers[2], z.dtype.type(1)
    along, other, across = known[ALONG], known[OTHER], known[SCALE]
    for k in range(len(z)):
        total, row = totals[k], kept[k]
        for j in range(total.size):
            total[j] *= row[j]
        along[k], other[k] = product(total, z[k]), product(total, bias)
    for k in range(len(z)):
        known[OF_Z, k], known[OF_BIAS, k], by_z2, by_bias2, by_zb = by_lengths(
            known[Z2, k], bias2, known[ZB, k], along[k], other[k], bound, epsilon, one
        )
        along[k], other[k], across[k] = (c + c) * by_z2, (c + c) * by_bias2, c * by_zb
    for k in range(len(z)):
        total, row = totals[k], z[k]
        sum_of_three(known[OF_Z, k], total, along[k], row, across[k], bias, grad_z[k])
        add_three(known[OF_BIAS, k], total, other[k], bias, across[k], row, by_bias)


@njit(inline="always")
def _update(
    x: Any, z: Any, bias: Any, share: float, other: float, kept: Any, update: Any, c: float
) -> Any:
    """What dropout keeps of the sum of numbers and bias; its products with itself and the point."""
    for j in range(x.size):
        update[j] = kept[j] * (share * z[j] + other * bias[j])
    v2, xv = x.dtype.type(0), x.dtype.type(0)
    for j in range(x.size):
        v2 += update[j] * update[j]
        xv += update[j] * x[j]
    return c * v2, c * xv


@njit(inline="always")
def _center(row: Any, x: Any, update: Any, share: float, other: float, epsilon: float) -> Any:
    """A sum less its mean into a row; return what scales it to length one a number."""
    zero, one = row.dtype.type(0), row.dtype.type(1)
    part, total, squared = one / row.dtype.type(row.size), zero, zero
    for j in range(row.size):
        value = share * x[j] + other * update[j]
        row[j] = value
        total += value
    mean = total * part
    for j in range(row.size):
        value = row[j] - mean
        row[j] = value
        squared += value * value
    return one / math.sqrt(squared * part + epsilon)


@njit(inline="always")
def _lengths(total: Any, slope: float, gain: Any, shift: Any, grad: Any, c: float) -> Any:
    """Scale a centered row; the squared length of what the norm makes, its product with a grad."""
    squared, along = total.dtype.type(0), total.dtype.type(0)
    for j in range(total.size):
        total[j] *= slope
    for j in range(total.size):
        normed = total[j] * gain[j] + shift[j]
        squared += normed * normed
        along += normed * grad[j]
    return c * squared, (c + c) * along


@njit(inline="always")
def _by_center(grad: Any, total: Any, gain: Any, slope: float) -> None:
    """The gradient before the norm in place of a scaled, centered row."""
    level, tilt, part = total.dtype.type(0), total.dtype.type(0), total.dtype.type(1)
    part /= total.dtype.type(total.size)
    for j in range(total.size):
        value = grad[j] * gain[j]
        level += value
        tilt += value * total[j]
    level, tilt = level * part, tilt * part
    for j in range(total.size):
        total[j] = slope * (grad[j] * gain[j] - level - tilt * total[j])
