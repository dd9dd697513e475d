"""Attention weights from Lorentz products on the CPU: distances and softmax of a row in one pass.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`.
"""

import math
from typing import Any

import numpy as np

from hyptrans.kernels.cpu.exponential import exp, largest_of, log1p
from hyptrans.kernels.cpu.jobs import BLOCK, matrix, read


def forward(block: int, pointer: Any) -> None:
    """Softmax of scaled distances over the keys that a query may look at, others getting 0.

    Matrices: products ``[B H T, S]``, scales ``[1, H]``, allowed ``[B, S]`` or none, weights.
    Numbers: the least excess of a product. Integers: T, H, whether no query sees a later key,
    whether distances are squared.
    """
    job = read(pointer)
    products, scales, allowed, out = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    least = job.numbers[0]
    length, heads, causal, squares = (
        job.integers[0],
        job.integers[1],
        job.integers[2],
        job.integers[3],
    )
    rows, size = products.shape
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    none = out.dtype.type(-np.inf)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        t, scale = n % length, scales[0, n // length % heads]
        seen = t + 1 if causal else size
        for j in range(seen):
            excess = -one - products[n, j]
            excess = least if excess < least else excess
            distance = log1p(excess + math.sqrt(excess * (excess + two)))
            out[n, j] = scale * (distance * distance if squares else distance)
        if allowed.shape[0]:
            b = n // (length * heads)
            own = out[n, t] if causal else zero
            for j in range(seen):
                out[n, j] = out[n, j] if allowed[b, j] > zero else none
            if causal:
                # a padding position that sees nothing would have no weights to normalize
                out[n, t] = own
        largest, total = largest_of(out[n, :seen]), zero
        for j in range(seen):
            power = exp(out[n, j] - largest)
            power = power if out[n, j] != none else zero
            out[n, j] = power
            total += power
        share = one / total
        for j in range(seen):
            out[n, j] *= share
        for j in range(seen, size):
            out[n, j] = zero


def backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`forward`.

    Matrices: gradient of the weights, weights, products, scales, gradient of the products,
    ``partial`` ``[blocks, H]`` (of the scales). Numbers and integers as there.
    """
    job = read(pointer)
    grad, weights, products = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    scales, out, partial = matrix(job, 3), matrix(job, 4), matrix(job, 5)
    least = job.numbers[0]
    length, heads, causal, squares = (
        job.integers[0],
        job.integers[1],
        job.integers[2],
        job.integers[3],
    )
    rows, size = products.shape
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    partial[block] = zero
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        h = n // length % heads
        scale, seen = scales[0, h], n % length + 1 if causal else size
        mean = zero
        for j in range(seen):
            mean += weights[n, j] * grad[n, j]
        by_scale = zero
        for j in range(seen):
            by_score = weights[n, j] * (grad[n, j] - mean)
            excess = -one - products[n, j]
            excess = least if excess < least else excess
            root = math.sqrt(excess * (excess + two))
            distance = log1p(excess + root)
            slope = (one if root > zero else zero) / (root if root > zero else one)
            if squares:
                slope *= two * distance
                distance *= distance
            by_scale += by_score * distance
            out[n, j] = -scale * by_score * slope
        for j in range(seen, size):
            out[n, j] = zero
        partial[block, h] += by_scale
