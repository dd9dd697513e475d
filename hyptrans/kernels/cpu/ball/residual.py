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


def forward(block: int, pointer: Any) -> None:
    """Points from points and the numbers of a matrix product.

    Matrices: points ``[N, d]``, numbers ``[N, d]``, their bias ``[1, d]``, beta ``[1, 1]``, gain
    and shift of the norm ``[1, d]``, new points.
    """
    job = read(pointer)
    x, z, bias, beta = matrix(job, 0), matrix(job, 1), matrix(job, 2)[0], matrix(job, 3)[0, 0]
    out, unit = matrix(job, 6), job.numbers[4]
    c, bound, epsilon, least = job.numbers[0], job.numbers[1], job.numbers[2], job.numbers[3]
    rows, d = x.shape
    zero, one = x.dtype.type(0), x.dtype.type(1)
    z2s, zbs, x2s, ratios, slopes, v2s, xvs = np.empty((7, FEW), x.dtype)
    updates, kept = np.empty((FEW, d), x.dtype), np.empty(d, x.dtype)
    gain, shift = np.empty(d, x.dtype), np.empty(d, x.dtype)
    times(matrix(job, 4)[0], unit, gain)
    times(matrix(job, 5)[0], unit, shift)
    bias2 = c * product(bias, bias)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), FEW):
        tile = min(FEW, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            x2s[k] = c * product(x[start + k], x[start + k])
            z2s[k], _, zbs[k] = products(z[start + k], bias, c)
        for k in range(tile):
            z2s[k], zbs[k] = shares(z2s[k], bias2, zbs[k], bound, epsilon, one)
            ratios[k], slopes[k] = artanh(x2s[k], bound, epsilon, one)
        for k in range(tile):
            n = start + k
            _keep(job, n, kept)
            v2s[k], xvs[k] = _update(x[n], z[n], bias, z2s[k], zbs[k], kept, updates[k], c)
        for k in range(tile):
            u2, v2 = ratios[k] * ratios[k] * x2s[k], beta * beta * v2s[k]
            share, other = shares(u2, v2, beta * ratios[k] * xvs[k], bound, epsilon, one)
            x2s[k], v2s[k] = share * ratios[k], other * beta
        for k in range(tile):
            row = out[start + k]
            slope = _center(row, x[start + k], updates[k], x2s[k], v2s[k], least)
            squared = zero
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
    beta, unit = matrix(job, 4)[0, 0], job.numbers[4]
    grad_x, grad_z, partial = matrix(job, 7), matrix(job, 8), matrix(job, 9)
    c, bound, epsilon, least = job.numbers[0], job.numbers[1], job.numbers[2], job.numbers[3]
    rows, d = x.shape
    one, by_beta = x.dtype.type(1), x.dtype.type(0)
    partial[block] = by_beta
    by_bias, by_gain, by_shift = np.zeros(d, x.dtype), np.zeros(d, x.dtype), np.zeros(d, x.dtype)
    (z2s, zbs, x2s, ratios, slopes, v2s, xvs, of_z, of_bias, alongs, others, of_x, across) = (
        np.empty((13, FEW), x.dtype)
    )
    updates, kept = np.empty((FEW, d), x.dtype), np.empty((FEW, d), x.dtype)
    totals = np.empty((FEW, d), x.dtype)
    gain, shift = np.empty(d, x.dtype), np.empty(d, x.dtype)
    times(matrix(job, 5)[0], unit, gain)
    times(matrix(job, 6)[0], unit, shift)
    bias2 = c * product(bias, bias)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), FEW):
        tile = min(FEW, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            x2s[k] = c * product(x[start + k], x[start + k])
            z2s[k], _, zbs[k] = products(z[start + k], bias, c)
        for k in range(tile):
            of_z[k], of_bias[k] = shares(z2s[k], bias2, zbs[k], bound, epsilon, one)
            ratios[k], slopes[k] = artanh(x2s[k], bound, epsilon, one)
        for k in range(tile):
            n = start + k
            _keep(job, n, kept[k])
            v2s[k], xvs[k] = _update(x[n], z[n], bias, of_z[k], of_bias[k], kept[k], updates[k], c)
        for k in range(tile):
            u2, v2 = ratios[k] * ratios[k] * x2s[k], beta * beta * v2s[k]
            share, other = shares(u2, v2, beta * ratios[k] * xvs[k], bound, epsilon, one)
            alongs[k], others[k] = share * ratios[k], other * beta
        for k in range(tile):
            n, total = start + k, totals[k]
            slope = _center(total, x[n], updates[k], alongs[k], others[k], least)
            of_x[k], alongs[k] = _lengths(total, slope, gain, shift, grad[n], c)
            across[k] = slope
        for k in range(tile):
            of_x[k], slope = tanh(of_x[k], bound, epsilon, one)
            alongs[k] *= slope
        for k in range(tile):
            n, total = start + k, totals[k]
            _by_norm(grad[n], total, gain, shift, of_x[k], alongs[k], grad_z[n], by_gain, by_shift)
            _by_center(grad_z[n], total, gain, across[k])
            alongs[k], others[k] = product(total, x[n]), product(total, updates[k])
        for k in range(tile):
            # the sum of u = ratio x and v = beta update; by_u2 and the like are by c times products
            ratio, x2, v2, xv = ratios[k], x2s[k], v2s[k], xvs[k]
            u2, uv = ratio * ratio * x2, beta * ratio * xv
            share, other, by_u2, by_v2, by_uv = by_lengths(
                u2, beta * beta * v2, uv, alongs[k] * ratio, others[k] * beta, bound, epsilon, one
            )
            by_ratio = share * alongs[k] + (by_u2 + by_u2) * ratio * x2 + by_uv * beta * xv
            by_beta += other * others[k] + (by_v2 + by_v2) * beta * v2 + by_uv * ratio * xv
            alongs[k] = share * ratio
            of_x[k] = (c + c) * (by_u2 * ratio * ratio + by_ratio * slopes[k])
            across[k] = c * by_uv * ratio * beta
            others[k], v2s[k] = other * beta, (c + c) * by_v2 * beta * beta
        for k in range(tile):
            n, total = start + k, totals[k]
            sum_of_three(alongs[k], total, of_x[k], x[n], across[k], updates[k], grad_x[n])
            sum_of_three(others[k], total, v2s[k], updates[k], across[k], x[n], total)
            row = kept[k]
            for j in range(d):
                total[j] *= row[j]
            alongs[k], others[k] = product(total, z[n]), product(total, bias)
        for k in range(tile):
            of_z[k], of_bias[k], by_z2, by_bias2, by_zb = by_lengths(
                z2s[k], bias2, zbs[k], alongs[k], others[k], bound, epsilon, one
            )
            alongs[k], others[k], across[k] = (c + c) * by_z2, (c + c) * by_bias2, c * by_zb
        for k in range(tile):
            n, total, row = start + k, totals[k], z[start + k]
            sum_of_three(of_z[k], total, alongs[k], row, across[k], bias, grad_z[n])
            add_three(of_bias[k], total, others[k], bias, across[k], row, by_bias)
    for j in range(d):
        partial[block, j] = by_bias[j]
        partial[block, d + j] = unit * by_gain[j]
        partial[block, 2 * d + j] = unit * by_shift[j]
    partial[block, 3 * d] = by_beta


@njit(inline="always")
def _keep(job: Any, n: int, kept: Any) -> None:
    """What dropout multiplies the numbers of a row with."""
    fill_kept(kept, job.integers[0], n, np.uint32(job.integers[1]), job.numbers[5])


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
def _by_norm(
    grad: Any,
    total: Any,
    gain: Any,
    shift: Any,
    ratio: float,
    along: float,
    out: Any,
    by_gain: Any,
    by_shift: Any,
) -> None:
    """The gradient behind the norm, before its gain, and that of gain and shift."""
    for j in range(total.size):
        out[j] = ratio * grad[j] + along * (total[j] * gain[j] + shift[j])
    for j in range(total.size):
        by_gain[j] += out[j] * total[j]
        by_shift[j] += out[j]


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
