"""One-pass kernels for what Hypformer does between matrix products.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`; the formulas are those of
:mod:`hyptrans.kernels.hypformer`.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.jobs import BLOCK, indices, matrix, read, vector


def norm_forward(block: int, pointer: Any) -> None:
    """Layer norm of an update and the scaled space part of a point, lifted.

    Matrices: points ``[N, d + 1]``, updates ``[N, d]``, gain and bias ``[1, d]``, new points.
    Numbers: 1/c, what is added to a variance, the scale.
    """
    job = read(pointer)
    x, update, gain = matrix(job, 0), matrix(job, 1), matrix(job, 2)[0]
    bias, out = matrix(job, 3)[0], matrix(job, 4)
    inverse_c, epsilon, scale = job.numbers[0], job.numbers[1], job.numbers[2]
    rows, d = update.shape
    zero, one = x.dtype.type(0), x.dtype.type(1)
    share = one / x.dtype.type(d)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        total = zero
        for j in range(d):
            both = update[n, j] + scale * x[n, j + 1]
            out[n, j + 1] = both
            total += both
        mean, squared = total * share, zero
        for j in range(d):
            off = out[n, j + 1] - mean
            squared += off * off
        slope, squared = one / math.sqrt(squared * share + epsilon), zero
        for j in range(d):
            value = (out[n, j + 1] - mean) * slope * gain[j] + bias[j]
            out[n, j + 1] = value
            squared += value * value
        out[n, 0] = math.sqrt(squared + inverse_c)


def norm_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`norm_forward`.

    Matrices: gradient of the new points, points, updates, gain, new points, gradient of the points,
    gradient of the updates, ``partial`` ``[blocks, 2 d + 2]`` (of gain, bias, scale and 1/c).
    Numbers as there.
    """
    job = read(pointer)
    grad, x, update = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    gain, made, partial = matrix(job, 3)[0], matrix(job, 4), matrix(job, 7)
    grad_x, grad_update = matrix(job, 5), matrix(job, 6)
    epsilon, scale = job.numbers[1], job.numbers[2]
    rows, d = update.shape
    zero, half, one = x.dtype.type(0), x.dtype.type(0.5), x.dtype.type(1)
    share = one / x.dtype.type(d)
    partial[block] = zero
    by_gain, by_bias = partial[block, :d], partial[block, d : 2 * d]
    normed = np.empty(d, x.dtype)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        total = zero
        for j in range(d):
            both = update[n, j] + scale * x[n, j + 1]
            normed[j] = both
            total += both
        mean, squared = total * share, zero
        for j in range(d):
            off = normed[j] - mean
            normed[j] = off
            squared += off * off
        slope = one / math.sqrt(squared * share + epsilon)
        by_time = grad[n, 0] / made[n, 0]
        level, along = zero, zero
        for j in range(d):
            value = normed[j] * slope
            by_value = grad[n, j + 1] + by_time * made[n, j + 1]
            by_gain[j] += by_value * value
            by_bias[j] += by_value
            by_value *= gain[j]
            normed[j] = value
            grad_update[n, j] = by_value
            level += by_value
            along += by_value * value
        level *= share
        along *= share
        by_scale = zero
        for j in range(d):
            by_both = slope * (grad_update[n, j] - level - along * normed[j])
            grad_update[n, j] = by_both
            grad_x[n, j + 1] = scale * by_both
            by_scale += by_both * x[n, j + 1]
        grad_x[n, 0] = zero
        partial[block, 2 * d] += by_scale
        partial[block, 2 * d + 1] += half * by_time


def relu_lift_forward(block: int, pointer: Any) -> None:
    """Rows ``[N, d]`` after ReLU to points. Matrices: points, rows. Numbers: 1/c."""
    job = read(pointer)
    out, space = matrix(job, 0), matrix(job, 1)
    rows, d = space.shape
    zero = out.dtype.type(0)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        squared = job.numbers[0]
        for j in range(d):
            value = space[n, j]
            value = zero if value < zero else value
            squared += value * value
            out[n, j + 1] = value
        out[n, 0] = math.sqrt(squared)


def relu_lift_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`relu_lift_forward`.

    Matrices: gradient of the points, points, gradient of the rows, ``partial`` ``[blocks, 1]`` (of
    1/c).
    """
    job = read(pointer)
    grad, out, grad_space, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    rows, d = grad_space.shape
    zero, half, by_inverse = out.dtype.type(0), out.dtype.type(0.5), out.dtype.type(0)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        by_time = grad[n, 0] / out[n, 0]
        for j in range(d):
            value = out[n, j + 1]
            by_value = grad[n, j + 1] + by_time * value
            grad_space[n, j] = by_value if value > zero else zero
        by_inverse += half * by_time
    partial[block, 0] = by_inverse


def focus_forward(block: int, pointer: Any) -> None:
    """Features of power 2, of numbers that may lie anyhow but for their last dimension.

    Matrices: features ``[B H T, d]``, numbers, factors ``[H, d]``. Numbers: what is added to ReLU.
    Integers: H, T, and the strides of all but the last dimension of the numbers.
    """
    job = read(pointer)
    out, factors, epsilon = matrix(job, 0), matrix(job, 2), job.numbers[0]
    heads, length = job.integers[0], job.integers[1]
    rows, d = out.shape
    zero, one = out.dtype.type(0), out.dtype.type(1)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        h, given = n // length % heads, vector(job, 1, _start(n, job.integers))
        # loops that only read need not be told that nothing overlaps
        squared, sharp = zero, zero
        for j in range(d):
            value = _channel(given[j], factors[h, j], epsilon, zero)
            squared += value * value
        inverse = one / squared
        for j in range(d):
            value = _channel(given[j], factors[h, j], epsilon, zero)
            value *= value * inverse
            sharp += value * value
        scale = inverse * math.sqrt(squared / sharp)
        for j in range(d):
            value = _channel(given[j], factors[h, j], epsilon, zero)
            out[n, j] = value * value * scale


def focus_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`focus_forward`.

    Matrices: gradient of the features ``[B H T, d]``, numbers, factors, gradient of the numbers
    ``[B H T, d]``, ``partial`` ``[blocks, H d]`` (of the factors). Numbers and integers as there.
    """
    job = read(pointer)
    grad, factors = matrix(job, 0), matrix(job, 2)
    grad_given, partial, epsilon = matrix(job, 3), matrix(job, 4), job.numbers[0]
    heads, length = job.integers[0], job.integers[1]
    rows, d = grad.shape
    zero, one = grad.dtype.type(0), grad.dtype.type(1)
    partial[block] = zero
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        h, given = n // length % heads, vector(job, 1, _start(n, job.integers))
        sums = partial[block, h * d : (h + 1) * d]
        squared, sharp, along = zero, zero, zero
        for j in range(d):
            value = _channel(given[j], factors[h, j], epsilon, zero)
            squared += value * value
        inverse = one / math.sqrt(squared)
        for j in range(d):
            unit = _channel(given[j], factors[h, j], epsilon, zero) * inverse
            sharp += unit * unit * unit * unit
            along += grad[n, j] * unit * unit
        root = one / math.sqrt(sharp)
        along *= root
        cubic = (along + along) / sharp
        root += root
        for j in range(d):
            value, factor = given[j], factors[h, j]
            unit = _channel(value, factor, epsilon, zero) * inverse
            by_channel = unit * (grad[n, j] * root + along - cubic * unit * unit)
            grad_given[n, j] = by_channel * factor if value > zero else zero
            sums[j] += by_channel * ((zero if value < zero else value) + epsilon)


def linear_step(block: int, pointer: Any) -> None:
    """One more position of linear attention, of power 2; a block is a hypothesis.

    Matrices: outputs ``[B H, e]``, numbers of queries, keys and values of one head at a time, sums
    ``[R H d, e]`` and ``[R H, d]`` before, their rows ``[1, B]`` of the hypotheses or none, sums
    ``[B H d, e]`` and ``[B H, d]`` after, maps ``[H d, 1 + e]``. Numbers: what is added to ReLU,
    the least sum to divide by. Integers: H, the strides of B and H in queries, keys and values.
    """
    job = read(pointer)
    out, order, maps = matrix(job, 0), indices(job, 6), matrix(job, 9)
    before, keys_before = matrix(job, 4), matrix(job, 5)
    after, keys_after = matrix(job, 7), matrix(job, 8)
    epsilon, integers, d = job.numbers[0], job.integers, keys_after.shape[1]
    asked, known = np.empty((2, d), out.dtype)
    source = order[0, block] if order.shape[0] else block
    for h in range(integers[0]):
        row, source_row = block * integers[0] + h, source * integers[0] + h
        query = vector(job, 1, block * integers[1] + h * integers[2])
        key = vector(job, 2, block * integers[3] + h * integers[4])
        value = vector(job, 3, block * integers[5] + h * integers[6])
        _features(query, maps, h, epsilon, asked)
        _features(key, maps, h, epsilon, known)
        for i in range(d):
            keys_after[row, i] = keys_before[source_row, i] + known[i]
        for i in range(d):
            of_key, old, new = known[i], before[source_row * d + i], after[row * d + i]
            for j in range(value.size):
                new[j] = old[j] + of_key * value[j]
        _answer(asked, after, keys_after[row], row, value, maps, h, job.numbers[1], out[row])


def linear_read(block: int, pointer: Any) -> None:
    """What a few queries get from sums by linear attention of power 2; a block is a row of sums.

    Matrices: outputs ``[B T H, e]``, numbers of queries, sums ``[R H d, e]`` and ``[R H, d]``,
    their rows ``[1, B]`` or none, maps ``[H d, 1 + e]``. Numbers as of :func:`linear_step`.
    Integers: T, H, the strides of B, H and T in the queries.
    """
    job = read(pointer)
    out, sums, keys = matrix(job, 0), matrix(job, 2), matrix(job, 3)
    order, maps, integers = indices(job, 4), matrix(job, 5), job.integers
    asked = np.empty(keys.shape[1], out.dtype)
    source = order[0, block] if order.shape[0] else block
    for t, h in np.ndindex(integers[0], integers[1]):
        query = vector(job, 1, block * integers[2] + h * integers[3] + t * integers[4])
        _features(query, maps, h, job.numbers[0], asked)
        row = source * integers[1] + h
        answer = out[(block * integers[0] + t) * integers[1] + h]
        _answer(asked, sums, keys[row], row, query, maps, h, job.numbers[1], answer)


@njit(inline="always")
def _features(given: Any, maps: Any, h: int, epsilon: float, out: Any) -> None:
    """Features of the numbers of a head, as :func:`focus_forward`."""
    zero, one, d = out.dtype.type(0), out.dtype.type(1), out.size
    squared, sharp = zero, zero
    for j in range(d):
        out[j] = _channel(given[j], maps[h * d + j, 0], epsilon, zero)
    for j in range(d):
        squared += out[j] * out[j]
    inverse = one / squared
    for j in range(d):
        out[j] *= out[j] * inverse
    for j in range(d):
        sharp += out[j] * out[j]
    scale = math.sqrt(squared / sharp)
    for j in range(d):
        out[j] *= scale


@njit(inline="always")
def _answer(
    asked: Any, sums: Any, keys: Any, row: int, own: Any, maps: Any, h: int, least: float, out: Any
) -> None:
    """What features get from the sums of a row, and what a position has of its own."""
    zero, one, d = out.dtype.type(0), out.dtype.type(1), asked.size
    total = zero
    for i in range(d):
        total += asked[i] * keys[i]
    share = one / (one if total < least else total)
    out[:] = zero
    for i in range(d):
        of_sum, of_own, summed, mapped = (
            asked[i] * share,
            own[i],
            sums[row * d + i],
            maps[h * d + i],
        )
        for j in range(out.size):
            out[j] += of_sum * summed[j] + of_own * mapped[j + 1]


@njit(inline="always")
def _channel(number: float, factor: float, epsilon: float, zero: float) -> Any:
    """A number after ReLU and scaling."""
    return ((zero if number < zero else number) + epsilon) * factor


@njit(inline="always")
def _start(row: int, integers: Any) -> int:
    """Where a row of ``[B H T]`` starts, from its strides."""
    heads, length = integers[0], integers[1]
    t, rest = row % length, row // length
    return rest // heads * integers[2] + rest % heads * integers[3] + t * integers[4]
