"""All of attention in one pass for a few queries, as in decoding: on the CPU, without a gradient.

Keys and values are read where they stand in a table, by their places.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry import klein, lorentz
from hyptrans.kernels.cpu import exp, indices, inlined, log1p, matrix, read, run, vector
from hyptrans.kernels.operator import Case, Draw, Kept, Kernels, Made, Operator

FEW_QUERIES = 8
"""More at a time make torch's fused attention the faster one."""


def in_one_pass(query: Tensor, operator: Operator) -> bool:
    """Whether all of attention is one operator for queries ``[B, H, T, d]``, and the faster way.

    It is on the CPU, for a few queries of each hypothesis, where no gradient is wanted.
    """
    # asked first: in a compiler's graph of any length there is no bound to compare with
    if torch.compiler.is_compiling():
        return False
    few = query.size(2) <= FEW_QUERIES
    return few and not torch.is_grad_enabled() and operator.backend(query) == "numba"


def centroids(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, *, c: lorentz.CurvatureLike
) -> Tensor:
    """:func:`hyptrans.layers.lorentz.mix.lorentz_mix` of keys and values at places in a table.

    Shapes: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places ``[B, S]``
    (-1 where nobody looks) -> ``[B, H, T, d]``.

    Raises:
        ValueError: no places, or not as many rows of places as of queries.
    """
    _check_places(query, places)
    made: Tensor = CENTROIDS(query, keys, values, places, c)
    return made


def plain_centroids(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, c: lorentz.CurvatureLike
) -> Tensor:
    """:func:`centroids` in plain torch."""
    at = places.clamp_min(0)
    scores = query @ keys[at].permute(0, 2, 3, 1)
    weights = scores.masked_fill((places < 0)[:, None, None], -torch.inf).softmax(-1)
    return lorentz.centroid(values[at].transpose(1, 2), weights, c=c)


def midpoints(query: Tensor, keys: Tensor, values: Tensor, places: Tensor, scale: Tensor) -> Tensor:
    """Midpoints of values at places in a table, weighted by ``softmax(scale d(query, key))``.

    Shapes: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places ``[B, S]``
    (-1 where nobody looks), scale ``[H]`` -> ``[B, H, T, d - 1]``, in memory positions first.
    Source: HAN eq. 2 and 3.

    Raises:
        ValueError: no places, or not as many rows of places as of queries.
    """
    _check_places(query, places)
    made: Tensor = MIDPOINTS(query, keys, values, places, scale)
    return made


def plain_midpoints(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, scale: Tensor
) -> Tensor:
    """:func:`midpoints` in plain torch."""
    at = places.clamp_min(0)
    scores = klein.distances(query, keys[at].transpose(1, 2)) * scale[:, None, None]
    weights = scores.masked_fill((places < 0)[:, None, None], -torch.inf).softmax(-1)
    return klein.midpoint(weights, values[at].transpose(1, 2))


def _check_places(query: Tensor, places: Tensor) -> None:
    if len(places) != len(query):
        raise ValueError(f"{len(query)} rows of queries need as many of places, got {len(places)}")
    if not places.size(-1):
        raise ValueError("attention needs at least one place to look at, got none")


def centroids_kernel(block: int, pointer: Any) -> None:
    """Lorentz attention of a few queries; a block is all queries with the same places.

    Matrices: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places
    ``[B, S]`` (-1: not looked at), points ``[B, T, H, d]``. Scalars: 1/c, relative floor of
    ``|v|_L^2``. Integers: T, H, and the strides of all but the last dimension of queries, keys and
    values.
    """
    job = read(pointer)
    places, out, integers = indices(job, 3)[block], matrix(job, 4), job.integers
    inverse_c, floor = job.scalars[0], job.scalars[1]
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


def midpoints_kernel(block: int, pointer: Any) -> None:
    """Attention of a few queries by distances; a block is all queries with the same places.

    Matrices: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places
    ``[B, S]`` (-1: not looked at), midpoints ``[B, T, H, d - 1]``, scales of distances ``[1, H]``.
    Scalars: the least time of a sum. Integers as of :func:`centroids_kernel`.
    """
    job = read(pointer)
    places, out, integers = indices(job, 3)[block], matrix(job, 4), job.integers
    scales, least = matrix(job, 5)[0], job.scalars[0]
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


@inlined
def _products(job: Any, query: Any, places: Any, h: int, products: Any) -> None:
    """Dot products of a query with the keys of a head."""
    stride, start, zero = job.integers[5], h * job.integers[6], products.dtype.type(0)
    for s in range(places.size):
        key, product = vector(job, 1, places[s] * stride + start), zero
        for j in range(query.size):
            product += query[j] * key[j]
        products[s] = product


@inlined
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


@inlined
def _mix(job: Any, weights: Any, places: Any, h: int, mixed: Any) -> None:
    """The weighted sum of the values of a head."""
    stride, start = job.integers[7], h * job.integers[8]
    mixed[:] = weights.dtype.type(0)
    for s in range(places.size):
        value, weight = vector(job, 2, places[s] * stride + start), weights[s]
        for j in range(mixed.size):
            mixed[j] += weight * value[j]


@inlined
def _own(places: Any) -> Any:
    """The places, with one that is looked at in place of each that is not.

    Its weight is 0, but 0 times a NaN of another sentence would be NaN.
    """
    own, spare = places.copy(), max(places.max(), 0)
    for s in range(own.size):
        own[s] = own[s] if own[s] >= 0 else spare
    return own


def _centroids(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, c: lorentz.CurvatureLike
) -> tuple[Made, Kept]:
    scalars, width = (1 / float(c), torch.finfo(query.dtype).eps), values.size(-1)
    return _attend(centroids_kernel, (query, keys, values), places, width, scalars), ()


def _midpoints(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, scale: Tensor
) -> tuple[Made, Kept]:
    scale, width = scale.to(query.dtype).contiguous(), values.size(-1) - 1
    scalars = (klein.LEAST_TIME,)
    return _attend(midpoints_kernel, (query, keys, values), places, width, scalars, scale), ()


def _attend(
    kernel: Any,
    given: tuple[Tensor, ...],
    places: Tensor,
    width: int,
    scalars: tuple[float, ...],
    *others: Tensor,
) -> Tensor:
    """Run attention of a few queries, whose results have so many numbers: ``[B, H, T, width]``."""
    query, keys, values = (t if t.stride(-1) == 1 else t.contiguous() for t in given)
    batch, heads, length, _ = query.shape
    out, places = query.new_empty(batch, length, heads, width), places.contiguous()
    matrices = (query, keys, values, places, out, *others)
    strides = (*query.stride()[:3], *keys.stride()[:2], *values.stride()[:2])
    work = places.numel() * length * heads * (keys.size(-1) + values.size(-1))
    integers = (length, heads, *strides)
    run(kernel, batch, matrices, scalars, integers, strided=True, work=work)
    return out.transpose(1, 2)


def _table(draw: Draw) -> tuple[Tensor, ...]:
    """Queries, points of keys and values, and the places of those that queries look at."""
    rows, length, heads = 3, 7, 2
    size = draw.width**-0.5
    query, keys = size * draw(rows, heads, 2, draw.width), draw(rows * length, heads, draw.width)
    places = torch.arange(rows * length, device=query.device).view(rows, length)
    return query, keys, draw(rows * length, heads, draw.width), places.masked_fill(places == 9, -1)


def _centroid_cases(draw: Draw) -> Iterator[Case]:
    query, keys, values, places = _table(draw)
    yield "centroids", (query, keys, lorentz.lift(values, c=draw.c), places, draw.c)


def _midpoint_cases(draw: Draw) -> Iterator[Case]:
    *vectors, places = _table(draw)
    yield "midpoints", (*(lorentz.lift(v) for v in vectors), places, -draw(2).exp())


CENTROIDS = Operator("centroids", plain_centroids, cases=_centroid_cases, cpu=Kernels(_centroids))
MIDPOINTS = Operator("midpoints", plain_midpoints, cases=_midpoint_cases, cpu=Kernels(_midpoints))
