"""One-pass kernels for the CPU, compiled by numba at their first call and kept in its cache.

Every kernel takes the range of blocks that it computes, ``BLOCK`` rows each, and arrays; sums over
rows go to one row of ``partial`` per block, so that no result depends on the number of threads.
The formulas are those of the eager operators; gradients are written out by hand.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

BLOCK = 256

Array = np.ndarray


def _kernel(function: Callable[..., None]) -> Callable[..., Any]:
    # "reassoc" and the like, but not "nnan" and "ninf": a NaN must stay one, to be seen
    flags = {"reassoc", "nsz", "arcp", "contract", "afn"}
    compiled: Callable[..., Any] = njit(nogil=True, cache=True, fastmath=flags)(function)
    return compiled


def blocks(rows: int) -> int:
    """How many blocks so many rows make."""
    return -(-rows // BLOCK)


@_kernel
def points_forward(
    first: int,
    last: int,
    z: Array,
    residual: Array,
    numbers: Array,
    scale: Array,
    factor: Array,
    out: Array,
) -> None:
    """``z`` ``[N, P, H, d]`` to points; ``residual`` ``[N, d]``, or ``[0, d]`` for none.

    ``numbers``: least time, 1/c, epsilon, and how much of the residual's time counts (0 or 1);
    ``scale`` ``[P]``: exp of the log scales; ``factor`` ``[0 or 1]``: with it, the points of the
    first projection are written as ``factor (-t, s)``.
    """
    least, inverse_c, epsilon, residual_time = numbers[0], numbers[1], numbers[2], numbers[3]
    rows, projections, heads, d = z.shape
    zero, one = z.dtype.type(0), z.dtype.type(1)
    for n in range(first * BLOCK, min(last * BLOCK, rows)):
        for p in range(projections):
            for h in range(heads):
                row, target = z[n, p, h], out[n, p, h]
                z_t = row[0]
                if residual.shape[0]:
                    z_t += residual_time * residual[n, 0]
                    for j in range(1, d):
                        target[j] = row[j] + residual[n, j]
                    row = target
                squared = zero
                for j in range(1, d):
                    squared += row[j] * row[j]
                time = scale[p] / (one + math.exp(-z_t)) + least
                ratio = (time * time - inverse_c) / (squared + epsilon)
                space_scale = math.sqrt(ratio)
                time = math.sqrt(squared * ratio + inverse_c)
                if p == 0 and factor.shape[0]:
                    space_scale *= factor[0]
                    time *= -factor[0]
                for j in range(1, d):
                    target[j] = row[j] * space_scale
                target[0] = time


@_kernel
def points_backward(
    first: int,
    last: int,
    grads: tuple[Array, ...],
    z: Array,
    residual: Array,
    numbers: Array,
    scale: Array,
    factor: Array,
    grad_z: Array,
    partial: Array,
) -> None:
    """Gradient of :func:`points_forward`; ``grads``: one ``[N, H, d]`` per projection.

    ``partial`` ``[blocks, P + 1]``: gradients of the log scales and, last, of the factor.
    """
    least, inverse_c, epsilon, residual_time = numbers[0], numbers[1], numbers[2], numbers[3]
    rows, projections, heads, d = z.shape
    zero, half, one = z.dtype.type(0), z.dtype.type(0.5), z.dtype.type(1)
    for block in range(first, last):
        for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
            for p in range(projections):
                for h in range(heads):
                    row, grad, target = z[n, p, h], grads[p][n, h], grad_z[n, p, h]
                    z_t, grad_t = row[0], grad[0]
                    if residual.shape[0]:
                        z_t += residual_time * residual[n, 0]
                        for j in range(1, d):
                            target[j] = row[j] + residual[n, j]
                        row = target
                    squared, along = zero, zero
                    for j in range(1, d):
                        squared += row[j] * row[j]
                        along += row[j] * grad[j]
                    sigmoid = one / (one + math.exp(-z_t))
                    time = scale[p] * sigmoid + least
                    inverse = one / (squared + epsilon)
                    ratio = (time * time - inverse_c) * inverse
                    root = math.sqrt(ratio)
                    out_t = math.sqrt(squared * ratio + inverse_c)
                    space_scale = root
                    if p == 0 and factor.shape[0]:
                        partial[block, projections] += along * root - grad_t * out_t
                        grad_t *= -factor[0]
                        along *= factor[0]
                        space_scale *= factor[0]
                    by_ratio = half * (along / root + grad_t * squared / out_t)
                    by_squared = half * grad_t * ratio / out_t - by_ratio * ratio * inverse
                    by_time = (by_ratio + by_ratio) * time * inverse * scale[p] * sigmoid
                    by_squared += by_squared
                    for j in range(1, d):
                        target[j] = grad[j] * space_scale + by_squared * row[j]
                    target[0] = by_time * (one - sigmoid)
                    partial[block, p] += by_time


@_kernel
def normalize_forward(first: int, last: int, v: Array, numbers: Array, out: Array) -> None:
    """Rows ``[N, d]`` onto the hyperboloid; ``numbers``: 1/c, relative floor of ``|v|_L^2``."""
    inverse_c, floor = numbers[0], numbers[1]
    rows, d = v.shape
    zero = v.dtype.type(0)
    for n in range(first * BLOCK, min(last * BLOCK, rows)):
        squared = zero
        for j in range(1, d):
            squared += v[n, j] * v[n, j]
        v_t = v[n, 0] * v[n, 0]
        scale = math.sqrt(inverse_c / max(v_t - squared, floor * v_t))
        for j in range(1, d):
            out[n, j] = v[n, j] * scale
        out[n, 0] = math.sqrt(squared * scale * scale + inverse_c)


@_kernel
def normalize_backward(
    first: int, last: int, grad: Array, v: Array, numbers: Array, grad_v: Array, partial: Array
) -> None:
    """Gradient of :func:`normalize_forward`; ``partial`` ``[blocks, 1]``: of 1/c."""
    inverse_c, floor = numbers[0], numbers[1]
    rows, d = v.shape
    zero, half = v.dtype.type(0), v.dtype.type(0.5)
    for block in range(first, last):
        for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
            squared, along = zero, zero
            for j in range(1, d):
                squared += v[n, j] * v[n, j]
                along += v[n, j] * grad[n, j]
            v_t = v[n, 0] * v[n, 0]
            length = max(v_t - squared, floor * v_t)
            scale = math.sqrt(inverse_c / length)
            time = math.sqrt(squared * scale * scale + inverse_c)
            # of the space part: its own gradient and that of the time, which follows from it
            by_time = grad[n, 0] / time
            along = along * scale + by_time * squared * scale * scale
            partial[block, 0] += half * (along / inverse_c + by_time)
            along /= length
            own = by_time * scale * scale
            if v_t - squared > floor * v_t:
                own += along
                time_share = along
            else:
                time_share = along * floor
            for j in range(1, d):
                grad_v[n, j] = scale * grad[n, j] + own * v[n, j]
            grad_v[n, 0] = -time_share * v[n, 0]


@_kernel
def lift_forward(first: int, last: int, space: Array, numbers: Array, out: Array) -> None:
    """Rows ``[N, d - 1]`` to points; ``numbers``: 1/c."""
    rows, d = out.shape
    for n in range(first * BLOCK, min(last * BLOCK, rows)):
        squared = numbers[0]
        for j in range(d - 1):
            squared += space[n, j] * space[n, j]
            out[n, j + 1] = space[n, j]
        out[n, 0] = math.sqrt(squared)


@_kernel
def lift_backward(
    first: int, last: int, grad: Array, out: Array, grad_space: Array, partial: Array
) -> None:
    """Gradient of :func:`lift_forward`; ``partial`` ``[blocks, 1]``: of 1/c."""
    rows, d = out.shape
    half = out.dtype.type(0.5)
    for block in range(first, last):
        for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
            by_time = grad[n, 0] / out[n, 0]
            for j in range(1, d):
                grad_space[n, j - 1] = grad[n, j] + by_time * out[n, j]
            partial[block, 0] += half * by_time


@_kernel
def dropout_forward(
    first: int, last: int, x: Array, seed: int, threshold: int, scale: Array, relu: bool, out: Array
) -> None:
    """Rows ``[N, d]``, a number kept where the hash of its place is at least ``threshold``."""
    rows, d = x.shape
    zero, least = x.dtype.type(0), np.uint32(threshold)
    for n in range(first * BLOCK, min(last * BLOCK, rows)):
        key = _key(seed, n)
        for j in range(d):
            value = x[n, j] * scale[0]
            if relu:
                value = max(value, zero) if value == value else value
            kept = _kept(key, j, least)
            out[n, j] = value if kept else zero


@_kernel
def dropout_backward(
    first: int, last: int, grad: Array, seed: int, threshold: int, scale: Array, grad_x: Array
) -> None:
    """Gradient of :func:`dropout_forward` without ReLU: the same numbers kept."""
    rows, d = grad.shape
    zero, least = grad.dtype.type(0), np.uint32(threshold)
    for n in range(first * BLOCK, min(last * BLOCK, rows)):
        key = _key(seed, n)
        for j in range(d):
            kept = _kept(key, j, least)
            grad_x[n, j] = grad[n, j] * scale[0] if kept else zero


@_kernel
def relu_dropout_backward(
    first: int, last: int, grad: Array, out: Array, scale: Array, grad_x: Array
) -> None:
    """Gradient with ReLU: what came out positive was kept and was positive."""
    rows, d = grad.shape
    zero = grad.dtype.type(0)
    for n in range(first * BLOCK, min(last * BLOCK, rows)):
        for j in range(d):
            grad_x[n, j] = grad[n, j] * scale[0] if out[n, j] > zero else zero


@njit(inline="always")
def _key(seed: int, row: int) -> np.uint32:
    """What the hashes of a row start from; both halves of the seed count."""
    return np.uint32(_mix(np.uint32(row) + np.uint32(seed)) ^ np.uint32(seed >> 32))


@njit(inline="always")
def _kept(key: np.uint32, column: int, threshold: np.uint32) -> bool:
    return bool(_mix(key + np.uint32(column) * np.uint32(0x9E3779B9)) >= threshold)


@njit(inline="always")
def _mix(number: int) -> np.uint32:
    """A hash of 32 bits (lowbias32): every bit of the input moves about half of the output's."""
    # the casts keep 32 bits, which numba would widen
    h = np.uint32(number)
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))
