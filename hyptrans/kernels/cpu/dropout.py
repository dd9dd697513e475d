"""Dropout on the CPU: a number is kept by a hash of its place, so that no mask is stored.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`.
"""

from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read


def dropout_forward(block: int, pointer: Any) -> None:
    """Keep a number of rows ``[N, d]`` where the hash of its place is at least the threshold.

    Matrices: rows, what is kept. Numbers: scale. Integers: seed, threshold, whether ReLU is first.
    """
    job = read(pointer)
    x, out = matrix(job, 0), matrix(job, 1)
    seed, least, relu = job.integers[0], np.uint32(job.integers[1]), job.integers[2] != 0
    rows, d = x.shape
    zero, scale = x.dtype.type(0), job.numbers[0]
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        key = key_of(seed, n)
        for j in range(d):
            value = x[n, j] * scale
            if relu:
                value = max(value, zero) if value == value else value
            kept = kept_at(key, j, least)
            out[n, j] = value if kept else zero


def dropout_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`dropout_forward` without ReLU: the same numbers kept.

    Matrices: gradient, gradient of the rows. Numbers and integers as there.
    """
    job = read(pointer)
    grad, grad_x = matrix(job, 0), matrix(job, 1)
    seed, least = job.integers[0], np.uint32(job.integers[1])
    rows, d = grad.shape
    zero, scale = grad.dtype.type(0), job.numbers[0]
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        key = key_of(seed, n)
        for j in range(d):
            kept = kept_at(key, j, least)
            grad_x[n, j] = grad[n, j] * scale if kept else zero


def relu_dropout_backward(block: int, pointer: Any) -> None:
    """Gradient with ReLU: what came out positive was kept and was positive.

    Matrices: gradient, what came out, gradient of the rows. Numbers: scale.
    """
    job = read(pointer)
    grad, out, grad_x = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    rows, d = grad.shape
    zero, scale = grad.dtype.type(0), job.numbers[0]
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        for j in range(d):
            grad_x[n, j] = grad[n, j] * scale if out[n, j] > zero else zero


@njit(inline="always")
def fill_kept(row: Any, seed: int, n: int, least: np.uint32, scale: float) -> None:
    """The scale where numbers of a row are kept, else 0; all of them where the least hash is 0."""
    zero = scale - scale
    if least == np.uint32(0):
        for j in range(row.size):
            row[j] = scale
    else:
        key = key_of(seed, n)
        for j in range(row.size):
            row[j] = scale if kept_at(key, j, least) else zero


@njit(inline="always")
def key_of(seed: int, row: int) -> np.uint32:
    """What the hashes of a row start from; both halves of the seed count."""
    return np.uint32(_mix(np.uint32(row) + np.uint32(seed)) ^ np.uint32(seed >> 32))


@njit(inline="always")
def kept_at(key: np.uint32, column: int, threshold: np.uint32) -> bool:
    """Whether a number of a row is kept."""
    return bool(_mix(key + np.uint32(column) * np.uint32(0x9E3779B9)) >= threshold)


@njit(inline="always")
def _mix(number: int) -> np.uint32:
    """A hash of 32 bits (lowbias32): every bit of the input moves about half of the output's."""
    # the casts keep 32 bits, which numba would widen
    h = np.uint32(number)
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))
