"""Hypformer's linear attention: its features, and decoding from sums in one pass on the CPU."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.cpu import BLOCK, blocks_of, indices, inlined, matrix, read, run, vector
from hyptrans.kernels.operator import Case, Draw, Grads, Kept, Kernels, Made, Operator

FEATURE_EPSILON = 1e-6
"""Added after ReLU and to the scale, so that a row without a positive number has features."""


def focus(numbers: Tensor, scale: Tensor, power: float) -> Tensor:
    """Features ``phi``: a power that sharpens the direction of a vector and keeps its length.

    ``phi = |u| / |u^p| u^p`` with ``u = (ReLU(numbers) + eps) / (softplus(scale) + eps)``.

    Shapes: numbers ``[..., d]``, scale broadcasts against it -> ``[..., d]``.
    Range: all positive; finite for numbers up to 1e18, also in half precision (float32 inside).
    Source: Hypformer eq. 19; ``scale`` has a number per channel, as a single one would cancel.
    """
    numbers, scale = at_least_float32(numbers), at_least_float32(scale)
    by_head = numbers.dim() == 4 and scale.shape == (numbers.size(1), 1, numbers.size(-1))
    known = power == 2 and by_head and numbers.dtype == scale.dtype
    made: Tensor = (FOCUS if known else plain_focus)(numbers, scale, power)
    return made


def plain_focus(numbers: Tensor, scale: Tensor, power: float) -> Tensor:
    """:func:`focus` in plain torch."""
    u = (F.relu(numbers) + FEATURE_EPSILON) / (F.softplus(scale) + FEATURE_EPSILON)
    # the largest number of a row cancels; dividing by it first keeps the power from overflowing
    # and its length from underflowing
    sharp = (u / u.detach().amax(-1, keepdim=True)).pow(power)
    return sharp * (u.norm(dim=-1, keepdim=True) / sharp.norm(dim=-1, keepdim=True))


def head_maps(scale: Tensor, psi: Tensor) -> Tensor:
    """What :func:`linear_step` and :func:`linear_read` take of a layer.

    Shapes: scale ``[H, 1, d]`` of the features, psi ``[H, d, e]`` -> ``[H, d, 1 + e]``.
    """
    scale, psi = at_least_float32(scale), at_least_float32(psi)
    factors = 1 / (F.softplus(scale) + FEATURE_EPSILON)
    return torch.cat([factors.transpose(1, 2), psi], dim=-1)


def linear_step(
    numbers: tuple[Tensor, Tensor, Tensor],
    key_value: Tensor,
    key_sum: Tensor,
    order: Tensor | None,
    maps: Tensor,
    *,
    least: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """One position of linear attention of power 2 after those in sums.

    Sums of reordered hypotheses are read where they stand: ``order`` ``[B]`` has their rows, None
    stands for 0, 1, ….

    Shapes: numbers of queries, keys and values ``[B, H, 1, .]``, sums ``[R, H, d, e]`` and
    ``[R, H, d]``, maps of :func:`head_maps` -> outputs ``[B, H, 1, e]``, sums ``[B, H, d, e]`` and
    ``[B, H, d]``. Source: Hypformer eq. 15 and 16.

    Raises:
        ValueError: there are not as many rows of sums as of queries.
    """
    _check_rows(len(numbers[0]), key_sum, order)
    made: tuple[Tensor, Tensor, Tensor] = STEP(*numbers, key_value, key_sum, order, maps, least)
    return made


def plain_step(query: Tensor, key: Tensor, value: Tensor, *stored: Any) -> tuple[Tensor, ...]:
    """:func:`linear_step` in plain torch."""
    key_value, key_sum, order, maps, least = stored
    if order is not None:
        key_value, key_sum = key_value[order], key_sum[order]
    known = _plain_features(key, maps)
    key_value = key_value + known.transpose(-1, -2) @ value
    key_sum = key_sum + known.sum(-2)
    return _plain_answers(query, value, key_value, key_sum, maps, least), key_value, key_sum


def linear_read(
    query: Tensor,
    key_value: Tensor,
    key_sum: Tensor,
    order: Tensor | None,
    maps: Tensor,
    *,
    least: float,
) -> Tensor:
    """What a few queries get from sums, as :func:`linear_step`; they map themselves.

    Shapes: numbers ``[B, H, T, d]`` -> ``[B, H, T, e]``, in memory positions before heads.
    """
    _check_rows(len(query), key_sum, order)
    made: Tensor = READ(query, key_value, key_sum, order, maps, least)
    return made


def plain_read(
    query: Tensor,
    key_value: Tensor,
    key_sum: Tensor,
    order: Tensor | None,
    maps: Tensor,
    least: float,
) -> Tensor:
    """:func:`linear_read` in plain torch."""
    if order is not None:
        key_value, key_sum = key_value[order], key_sum[order]
    return _plain_answers(query, query, key_value, key_sum, maps, least)


def _plain_features(numbers: Tensor, maps: Tensor) -> Tensor:
    u = (F.relu(numbers) + FEATURE_EPSILON) * maps[:, :, 0].unsqueeze(1)
    return u.square() * (u.norm(dim=-1, keepdim=True) / u.square().norm(dim=-1, keepdim=True))


def _plain_answers(
    query: Tensor, own: Tensor, key_value: Tensor, key_sum: Tensor, maps: Tensor, least: float
) -> Tensor:
    features = _plain_features(query, maps)
    total = features @ key_sum.unsqueeze(-1)
    mixed = features @ key_value / torch.where(total < least, 1, total)
    return mixed + own @ maps[:, :, 1:]


def _check_rows(queries: int, key_sum: Tensor, order: Tensor | None) -> None:
    rows = len(key_sum if order is None else order)
    if rows != queries:
        raise ValueError(f"{queries} rows of queries need as many of sums, got {rows}")


def focus_forward(block: int, pointer: Any) -> None:
    """Features of power 2, of numbers that may lie anyhow but for their last dimension.

    Matrices: features ``[B H T, d]``, numbers, factors ``[H, d]``. Scalars: what is added to ReLU.
    Integers: H, T, and the strides of all but the last dimension of the numbers.
    """
    job = read(pointer)
    out, factors, epsilon = matrix(job, 0), matrix(job, 2), job.scalars[0]
    heads, length, rows = job.integers[0], job.integers[1], len(out)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        h, given = n // length % heads, vector(job, 1, _start(n, job.integers))
        _features(given, factors[h], epsilon, out[n])


def focus_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`focus_forward`.

    Matrices: gradient of the features ``[B H T, d]``, numbers, factors, gradient of the numbers
    ``[B H T, d]``, ``partial`` ``[blocks, H d]`` (of the factors). Scalars and integers as there.
    """
    job = read(pointer)
    grad, factors = matrix(job, 0), matrix(job, 2)
    grad_given, partial, epsilon = matrix(job, 3), matrix(job, 4), job.scalars[0]
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


def step_kernel(block: int, pointer: Any) -> None:
    """One more position of linear attention, of power 2; a block is a hypothesis.

    Matrices: outputs ``[B H, e]``, numbers of queries, keys and values of one head at a time, sums
    ``[R H d, e]`` and ``[R H, d]`` before, their rows ``[1, B]`` of the hypotheses or none, sums
    ``[B H d, e]`` and ``[B H, d]`` after, maps ``[H d, 1 + e]``. Scalars: what is added to ReLU,
    the least sum to divide by. Integers: H, the strides of B and H in queries, keys and values.
    """
    job = read(pointer)
    out, order, maps = matrix(job, 0), indices(job, 6), matrix(job, 9)
    before, keys_before = matrix(job, 4), matrix(job, 5)
    after, keys_after = matrix(job, 7), matrix(job, 8)
    epsilon, integers, d = job.scalars[0], job.integers, keys_after.shape[1]
    asked, known = np.empty((2, d), out.dtype)
    source = order[0, block] if order.shape[0] else block
    for h in range(integers[0]):
        row, source_row = block * integers[0] + h, source * integers[0] + h
        query = vector(job, 1, block * integers[1] + h * integers[2])
        key = vector(job, 2, block * integers[3] + h * integers[4])
        value = vector(job, 3, block * integers[5] + h * integers[6])
        _features(query, maps[h * d : (h + 1) * d, 0], epsilon, asked)
        _features(key, maps[h * d : (h + 1) * d, 0], epsilon, known)
        for i in range(d):
            keys_after[row, i] = keys_before[source_row, i] + known[i]
        for i in range(d):
            of_key, old, new = known[i], before[source_row * d + i], after[row * d + i]
            for j in range(value.size):
                new[j] = old[j] + of_key * value[j]
        _answer(asked, after, keys_after[row], row, value, maps, h, job.scalars[1], out[row])


def read_kernel(block: int, pointer: Any) -> None:
    """What a few queries get from sums by linear attention of power 2; a block is a row of sums.

    Matrices: outputs ``[B T H, e]``, numbers of queries, sums ``[R H d, e]`` and ``[R H, d]``,
    their rows ``[1, B]`` or none, maps ``[H d, 1 + e]``. Scalars as of :func:`linear_step`.
    Integers: T, H, the strides of B, H and T in the queries.
    """
    job = read(pointer)
    out, sums, keys = matrix(job, 0), matrix(job, 2), matrix(job, 3)
    order, maps, integers = indices(job, 4), matrix(job, 5), job.integers
    d = keys.shape[1]
    asked = np.empty(d, out.dtype)
    source = order[0, block] if order.shape[0] else block
    for t, h in np.ndindex(integers[0], integers[1]):
        query = vector(job, 1, block * integers[2] + h * integers[3] + t * integers[4])
        _features(query, maps[h * d : (h + 1) * d, 0], job.scalars[0], asked)
        row = source * integers[1] + h
        answer = out[(block * integers[0] + t) * integers[1] + h]
        _answer(asked, sums, keys[row], row, query, maps, h, job.scalars[1], answer)


@inlined
def _features(given: Any, factors: Any, epsilon: float, out: Any) -> None:
    """Features of the numbers of a head."""
    zero, one, d = out.dtype.type(0), out.dtype.type(1), out.size
    squared, sharp = zero, zero
    for j in range(d):
        out[j] = _channel(given[j], factors[j], epsilon, zero)
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


@inlined
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
        of_sum, of_own = asked[i] * share, own[i]
        summed, mapped = sums[row * d + i], maps[h * d + i]
        for j in range(out.size):
            out[j] += of_sum * summed[j] + of_own * mapped[j + 1]


@inlined
def _channel(number: float, factor: float, epsilon: float, zero: float) -> Any:
    """A number after ReLU and scaling."""
    return ((zero if number < zero else number) + epsilon) * factor


@inlined
def _start(row: int, integers: Any) -> int:
    """Where a row of ``[B H T]`` starts, from its strides."""
    heads, length = integers[0], integers[1]
    t, rest = row % length, row // length
    return rest // heads * integers[2] + rest % heads * integers[3] + t * integers[4]


def _focus(numbers: Tensor, scale: Tensor, _: float) -> tuple[Made, Kept]:
    numbers = _rows(numbers)
    factors = (1 / (F.softplus(scale) + FEATURE_EPSILON)).contiguous()
    out, integers = numbers.new_empty(numbers.shape), _places(numbers)
    matrices = (out, numbers, factors)
    run(focus_forward, blocks_of(out), matrices, (FEATURE_EPSILON,), integers, strided=True)
    return out, (numbers, scale, factors)


def _focus_back(kept: Kept, grad: Tensor) -> Grads:
    numbers, scale, factors = kept
    out, grad = numbers.new_empty(numbers.shape), grad.contiguous()
    partial = grad.new_empty(blocks_of(grad), factors.numel())
    matrices, integers = (grad, numbers, factors, out, partial), _places(numbers)
    run(focus_backward, len(partial), matrices, (FEATURE_EPSILON,), integers, strided=True)
    by_factors = partial.sum(0).view_as(factors)
    return out, -by_factors * factors.square() * torch.sigmoid(scale)


def _places(numbers: Tensor) -> tuple[int, ...]:
    """Heads, positions, and the strides of all but the last dimension."""
    return (*numbers.shape[1:3], *numbers.stride()[:3])


def _rows(numbers: Tensor) -> Tensor:
    """Numbers of which those of a head lie side by side."""
    return numbers if numbers.stride(-1) == 1 else numbers.contiguous()


def _step(query: Tensor, key: Tensor, value: Tensor, *stored: Any) -> tuple[Made, Kept]:
    key_value, key_sum, order, maps, least = stored
    query, key, value = (_rows(t) for t in (query, key, value))
    batch, heads, _, d = query.shape
    out = query.new_empty(batch, 1, heads, value.size(-1))
    after = query.new_empty(batch, *key_value.shape[1:])
    keys_after = query.new_empty(batch, heads, d)
    strides = (stride for t in (query, key, value) for stride in t.stride()[:2])
    sums = _stored(key_value, key_sum, order)
    matrices = (out, query, key, value, *sums, after, keys_after, maps)
    scalars, integers, work = (FEATURE_EPSILON, least), (heads, *strides), 2 * after.numel()
    run(step_kernel, batch, matrices, scalars, integers, strided=True, work=work)
    return (out.transpose(1, 2), after, keys_after), ()


def _read(query: Tensor, *stored: Any) -> tuple[Made, Kept]:
    *sums, maps, least = stored
    query = _rows(query)
    batch, heads, length, d = query.shape
    out = query.new_empty(batch, length, heads, sums[0].size(-1))
    matrices, integers = (out, query, *_stored(*sums), maps), (length, heads, *query.stride()[:3])
    scalars, work = (FEATURE_EPSILON, least), out.numel() * d
    run(read_kernel, batch, matrices, scalars, integers, strided=True, work=work)
    return out.transpose(1, 2), ()


def _stored(
    key_value: Tensor, key_sum: Tensor, order: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Sums and their rows as kernels read them."""
    order = None if order is None else order.contiguous()
    return key_value.contiguous(), key_sum.contiguous(), order


def _focus_cases(draw: Draw) -> Iterator[Case]:
    batch, length = draw.batch
    numbers = draw(batch, length, 2, draw.width).transpose(1, 2)
    yield "features", (numbers, draw(2, 1, draw.width), 2.0)


def _sums(draw: Draw, queries: int) -> tuple[Any, ...]:
    """Queries, sums, their order, maps, and the least sum to divide by."""
    rows, heads, d = 3, 2, draw.width
    maps = head_maps(draw(heads, 1, d), draw(heads, d, d))
    sums = draw(rows, heads, d, d), 1 + draw(rows, heads, d).square()
    order = torch.tensor([2, 0, 2], device=maps.device)
    return draw(rows, heads, queries, d), (*sums, order, maps, 1e-30)


def _step_cases(draw: Draw) -> Iterator[Case]:
    query, stored = _sums(draw, 1)
    key, value = draw(2, *query.shape)
    yield "step of linear attention", (query, key, value, *stored)


def _read_cases(draw: Draw) -> Iterator[Case]:
    query, stored = _sums(draw, 2)
    yield "linear attention of sums", (query, *stored)


FOCUS = Operator("features", plain_focus, cases=_focus_cases, cpu=Kernels(_focus, _focus_back))
STEP = Operator("step of linear attention", plain_step, cases=_step_cases, cpu=Kernels(_step))
READ = Operator("linear attention of sums", plain_read, cases=_read_cases, cpu=Kernels(_read))
