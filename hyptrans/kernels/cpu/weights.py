"""Attention weights on the CPU, and all of attention for a few queries, each in one pass.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`. Those for a few queries read keys and values at
places of a table, four at a time, as a loop over the numbers of one is short.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hyptrans.kernels.cpu.exponential import exp, largest_of, log1p
from hyptrans.kernels.cpu.jobs import BLOCK, indices, matrix, read, vector


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


def centroids(block: int, pointer: Any) -> None:
    """Lorentz attention of a few queries; a block is all those with the same places.

    Matrices: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places
    ``[B, S]`` (-1: not looked at), points ``[B, T, H, d]``. Numbers: 1/c, relative floor of
    ``|v|_L^2``. Integers: T, H, and the strides of all but the last dimension of queries, keys and
    values.
    """
    job = read(pointer)
    places, out, integers = indices(job, 3)[block], matrix(job, 4), job.integers
    inverse_c, floor = job.numbers[0], job.numbers[1]
    zero, weights = out.dtype.type(0), np.empty(places.size, out.dtype)
    read_at = _own(places)
    for t, h in np.ndindex(integers[0], integers[1]):
        query = vector(job, 0, block * integers[2] + h * integers[3] + t * integers[4])
        _products(job, query, read_at, h, weights)
        _softmax(weights, places)
        # the centroid does not depend on the scale of the weights
        mixed = out[(block * integers[0] + t) * integers[1] + h]
        _mix(job, weights, read_at, h, mixed)
        squared, time = zero, mixed[0] * mixed[0]
        for j in range(1, mixed.size):
            squared += mixed[j] * mixed[j]
        scale = math.sqrt(inverse_c / max(time - squared, floor * time))
        for j in range(1, mixed.size):
            mixed[j] *= scale
        mixed[0] = math.sqrt(squared * scale * scale + inverse_c)


def midpoints(block: int, pointer: Any) -> None:
    """Attention of a few queries by distances; a block is all those with the same places.

    Matrices: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places
    ``[B, S]`` (-1: not looked at), midpoints ``[B, T, H, d - 1]``, scales of distances ``[1, H]``.
    Numbers: the least time of a sum. Integers as of :func:`centroids`.
    """
    job = read(pointer)
    places, out, integers = indices(job, 3)[block], matrix(job, 4), job.integers
    scales, least = matrix(job, 5)[0], job.numbers[0]
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    weights = np.empty(places.size, out.dtype)
    flipped, mixed = np.empty((2, out.shape[1] + 1), out.dtype)
    read_at = _own(places)
    for t, h in np.ndindex(integers[0], integers[1]):
        query = vector(job, 0, block * integers[2] + h * integers[3] + t * integers[4])
        for j in range(flipped.size):
            flipped[j] = query[j]
        flipped[0] = -flipped[0]
        _products(job, flipped, read_at, h, weights)
        for s in range(weights.size):
            excess = -one - weights[s]
            excess = zero if excess < zero else excess
            weights[s] = scales[h] * log1p(excess + math.sqrt(excess * (excess + two)))
        _softmax(weights, places)
        _mix(job, weights, read_at, h, mixed)
        # the midpoint does not depend on the scale of the weights
        inverse = one / (one if mixed[0] < least else mixed[0])
        row = (block * integers[0] + t) * integers[1] + h
        for j in range(1, mixed.size):
            out[row, j - 1] = mixed[j] * inverse


@njit(inline="always")
def _products(job: Any, query: Any, places: Any, h: int, products: Any) -> None:
    """Dot products of a query with the keys of a head."""
    stride, start, zero = job.integers[5], h * job.integers[6], products.dtype.type(0)
    together = places.size // 4 * 4
    for s in range(0, together, 4):
        one = _row(job, 1, places[s], stride, start)
        two = _row(job, 1, places[s + 1], stride, start)
        three = _row(job, 1, places[s + 2], stride, start)
        four = _row(job, 1, places[s + 3], stride, start)
        by_one, by_two, by_three, by_four = zero, zero, zero, zero
        for j in range(query.size):
            by_one += query[j] * one[j]
            by_two += query[j] * two[j]
            by_three += query[j] * three[j]
            by_four += query[j] * four[j]
        products[s], products[s + 1] = by_one, by_two
        products[s + 2], products[s + 3] = by_three, by_four
    for s in range(together, places.size):
        one, by_one = _row(job, 1, places[s], stride, start), zero
        for j in range(query.size):
            by_one += query[j] * one[j]
        products[s] = by_one


@njit(inline="always")
def _softmax(scores: Any, places: Any) -> None:
    """Scores to weights up to their scale, 0 where nobody looks."""
    zero, none = scores.dtype.type(0), scores.dtype.type(-np.inf)
    largest = none
    for s in range(scores.size):
        scores[s] = scores[s] if places[s] >= 0 else none
        largest = max(largest, scores[s])
    for s in range(scores.size):
        scores[s] = exp(scores[s] - largest)
    for s in range(scores.size):
        scores[s] = scores[s] if places[s] >= 0 else zero


@njit(inline="always")
def _mix(job: Any, weights: Any, places: Any, h: int, mixed: Any) -> None:
    """The weighted sum of the values of a head."""
    stride, start = job.integers[7], h * job.integers[8]
    mixed[:] = weights.dtype.type(0)
    together = places.size // 4 * 4
    for s in range(0, together, 4):
        one = _row(job, 2, places[s], stride, start)
        two = _row(job, 2, places[s + 1], stride, start)
        three = _row(job, 2, places[s + 2], stride, start)
        four = _row(job, 2, places[s + 3], stride, start)
        of_one, of_two = weights[s], weights[s + 1]
        of_three, of_four = weights[s + 2], weights[s + 3]
        for j in range(mixed.size):
            both = of_one * one[j] + of_two * two[j]
            mixed[j] += both + of_three * three[j] + of_four * four[j]
    for s in range(together, places.size):
        one, of_one = _row(job, 2, places[s], stride, start), weights[s]
        for j in range(mixed.size):
            mixed[j] += of_one * one[j]


@njit(inline="always")
def _row(job: Any, i: int, place: int, stride: int, start: int) -> Any:
    """The numbers of a head at a place."""
    return vector(job, i, place * stride + start)


@njit(inline="always")
def _own(places: Any) -> Any:
    """The places, and one of them where nobody looks.

    What is read there gets the weight 0, which a NaN of another sentence would survive.
    """
    own, spare = places.copy(), max(places.max(), 0)
    for s in range(own.size):
        own[s] = own[s] if own[s] >= 0 else spare
    return own
