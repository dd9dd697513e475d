"""Points of the hyperboloid from the numbers of a linear map, of several heads at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.kernels import cuda
from hyptrans.kernels.cpu import BLOCK, TILE, blocks_of, exp, inlined, matrix, read, run
from hyptrans.kernels.cuda import lanes, space_product, time_of, with_time
from hyptrans.kernels.operator import (
    MOST_PROJECTIONS,
    Case,
    Draw,
    Grads,
    Kept,
    Kernels,
    Made,
    Operator,
)

if TYPE_CHECKING:
    import triton.language as tl  # type: ignore


def points(
    z: Tensor,
    log_scale: Tensor,
    *,
    c: float,
    residual: Tensor | None = None,
    residual_time: bool = True,
    query_factor: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.lorentz.points` of several projections: HyboNet eq. 3.

    With ``query_factor`` ``f`` the points of the first projection come as ``f (-t, s)``, whose dot
    products are ``f`` times the Lorentz products.

    Shapes: z ``[..., P, H, d]``, log_scale ``[P]``, query_factor ``[]`` -> ``P`` tensors
    ``[..., H, d]``; residual ``[..., d]`` is added to ``z``, of one projection and one head.

    ``residual_time``: whether the residual's time coordinate is added too.

    Raises:
        ValueError: log scales of another number than the projections', or a residual of several
            heads.
    """
    projections = z.size(-3)
    if log_scale.dim() != 1 or log_scale.size(0) != projections:
        shape = tuple(log_scale.shape)
        raise ValueError(f"{projections} projections need as many log scales, got {shape}")
    z, log_scale, residual, query_factor = _of_one_dtype(z, log_scale, residual, query_factor)
    if residual is not None:
        if projections * z.size(-2) != 1:
            shape = tuple(z.shape[-3:-1])
            raise ValueError(f"a residual needs one projection of one head, got {shape}")
        residual = residual.expand(*z.shape[:-3], z.size(-1))
    if query_factor is not None:
        query_factor = query_factor.reshape(())
    apply = POINTS if projections <= MOST_PROJECTIONS else plain_points
    made: tuple[Tensor, ...] = apply(z, log_scale, residual, query_factor, c, residual_time)
    return made


def plain_points(
    z: Tensor,
    log_scale: Tensor,
    residual: Tensor | None,
    query_factor: Tensor | None,
    c: float,
    residual_time: bool,
) -> tuple[Tensor, ...]:
    """:func:`points` in plain torch."""
    if residual is not None:
        residual = residual if residual_time else F.pad(residual[..., 1:], (1, 0))
        z = z + residual.unflatten(-1, z.shape[-3:])
    made = lorentz.points(z, log_scale[:, None, None], c=c)
    if query_factor is not None:
        queries, others = made[..., :1, :, :], made[..., 1:, :, :]
        made = torch.cat([lorentz.flip_time(queries) * query_factor, others], dim=-3)
    return made.unbind(-3)


def _of_one_dtype(*tensors: Tensor | None) -> Any:
    """All in float32, or in float64 where one is."""
    given = [x.dtype for x in tensors if x is not None]
    if given.count(torch.float32) == len(given):
        return tensors
    dtype = torch.float64 if torch.float64 in given else torch.float32
    return tuple(None if x is None else x.to(dtype) for x in tensors)


def points_forward(block: int, pointer: Any) -> None:
    """Numbers to points; with a factor, the first projection's points become ``factor (-t, s)``.

    Matrices: z ``[N P H, d]``, residual ``[N, d]`` (where P = H = 1) or none, log scales
    ``[1, P]``, factor ``[1, 1]`` or none, points. Scalars: least time, 1/c, epsilon, and how much
    of the residual's time counts (0 or 1). Integers: H.
    """
    job = read(pointer)
    z, residual, log_scale = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    factor, out = matrix(job, 3), matrix(job, 4)
    least, inverse_c, epsilon, counts = _four(job.scalars)
    heads, projections = job.integers[0], log_scale.shape[1]
    rows, d = z.shape
    zero, one = z.dtype.type(0), z.dtype.type(1)
    scale = np.exp(log_scale[0])
    times, squares, scales, time_factors, space_factors = np.empty((5, TILE), z.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        head, p = start % heads, start // heads % projections
        for k in range(tile):
            n = start + k
            squared, time = zero, z[n, 0]
            scales[k], time_factors[k], space_factors[k] = scale[p], one, one
            if p == 0 and factor.shape[0]:
                time_factors[k], space_factors[k] = -factor[0, 0], factor[0, 0]
            head += 1
            if head == heads:
                head, p = 0, (p + 1 if p + 1 < projections else 0)
            if residual.shape[0]:
                time += counts * residual[n, 0]
                for j in range(1, d):
                    out[n, j] = z[n, j] + residual[n, j]
                    squared += out[n, j] * out[n, j]
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
            squares[k], times[k] = squared, time
        # roots and quotients of many rows overlap; within one row each waits for the one before
        for k in range(tile):
            time = scales[k] / (one + exp(-times[k])) + least
            ratio = (time * time - inverse_c) / (squares[k] + epsilon)
            times[k] = time_factors[k] * math.sqrt(squares[k] * ratio + inverse_c)
            space_factors[k] *= math.sqrt(ratio)
        for k in range(tile):
            n, space_scale = start + k, space_factors[k]
            if residual.shape[0]:
                for j in range(d):
                    out[n, j] *= space_scale
            else:
                for j in range(d):
                    out[n, j] = z[n, j] * space_scale
            out[n, 0] = times[k]


def points_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`points_forward`; a block has rows of one projection only.

    Matrices: gradient of z, z, residual, log scales, factor, ``partial`` ``[blocks, 2]`` (gradients
    of the log scale and of the factor), and for each projection the gradient of its points
    ``[N H, d]``. Scalars and integers as there.
    """
    job = read(pointer)
    grad_z, z, residual = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    log_scale, factor, partial = matrix(job, 3), matrix(job, 4), matrix(job, 5)
    least, inverse_c, epsilon, counts = _four(job.scalars)
    heads, projections = job.integers[0], log_scale.shape[1]
    blocks_each = partial.shape[0] // projections
    projection, first = block // blocks_each, block % blocks_each * BLOCK
    grad = matrix(job, 6 + projection)
    rows, d = grad.shape
    zero, half, one = z.dtype.type(0), z.dtype.type(0.5), z.dtype.type(1)
    scale = math.exp(log_scale[0, projection])
    queries = projection == 0 and factor.shape[0] > 0
    # rows of z between those of this projection
    others, before = (projections - 1) * heads, projection * heads
    squares, alongs, times, space_scales, by_squares, grad_times = np.empty((6, TILE), z.dtype)
    time_factor, space_factor = one, one
    if queries:
        time_factor, space_factor = -factor[0, 0], factor[0, 0]
    sum_scale, sum_factor = zero, zero
    for start in range(first, min(first + BLOCK, rows), TILE):
        tile = min(TILE, min(first + BLOCK, rows) - start)
        head, n = start % heads, start + start // heads * others + before
        for k in range(tile):
            g = start + k
            squared, along, time = zero, zero, z[n, 0]
            if residual.shape[0]:
                time += counts * residual[n, 0]
                for j in range(1, d):
                    value = z[n, j] + residual[n, j]
                    squared += value * value
                    along += value * grad[g, j]
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
                    along += z[n, j] * grad[g, j]
            squares[k], alongs[k], times[k], grad_times[k] = squared, along, time, grad[g, 0]
            head, n = _next(head, n, heads, others)
        by_scale, by_factor = zero, zero
        # without a branch, and on numbers of the tile alone, this loop becomes vector code
        for k in range(tile):
            squared, along, grad_time = squares[k], alongs[k], grad_times[k]
            sigmoid = one / (one + exp(-times[k]))
            time = scale * sigmoid + least
            inverse = one / (squared + epsilon)
            ratio = (time * time - inverse_c) * inverse
            root = math.sqrt(ratio)
            out_time = math.sqrt(squared * ratio + inverse_c)
            by_factor += along * root - grad_time * out_time
            grad_time *= time_factor
            along *= space_factor
            space_scales[k] = root * space_factor
            by_time = grad_time / out_time
            by_ratio = half * (along / root + by_time * squared)
            by_squares[k] = by_time * ratio - (by_ratio + by_ratio) * ratio * inverse
            by_time = (by_ratio + by_ratio) * time * inverse * scale * sigmoid
            times[k] = by_time * (one - sigmoid)
            by_scale += by_time
        sum_scale += by_scale
        sum_factor += by_factor
        head, n = start % heads, start + start // heads * others + before
        for k in range(tile):
            g = start + k
            space_scale, by_squared = space_scales[k], by_squares[k]
            if residual.shape[0]:
                for j in range(d):
                    value = z[n, j] + residual[n, j]
                    grad_z[n, j] = grad[g, j] * space_scale + by_squared * value
            else:
                for j in range(d):
                    grad_z[n, j] = grad[g, j] * space_scale + by_squared * z[n, j]
            grad_z[n, 0] = times[k]
            head, n = _next(head, n, heads, others)
    partial[block, 0], partial[block, 1] = sum_scale, sum_factor


@inlined
def _next(head: int, row: int, heads: int, others: int) -> Any:
    """The next head of a projection, and its row among those of all projections."""
    if head + 1 < heads:
        return head + 1, row + 1
    return 0, row + 1 + others


@inlined
def _four(numbers: Any) -> Any:
    return numbers[0], numbers[1], numbers[2], numbers[3]


def _forward(z: Tensor, log_scale: Tensor, *others: Any) -> tuple[Made, Kept]:
    residual, factor, c, residual_time = others
    z, log_scale = z.contiguous(), log_scale.contiguous()
    residual = None if residual is None else residual.contiguous()
    scalars, out = _scalars(z, c, residual_time), torch.empty_like(z)
    matrices = (z, residual, log_scale, factor, out)
    run(points_forward, blocks_of(z), matrices, scalars, (z.size(-2),))
    return out.unbind(-3), (z, log_scale, residual, factor, c, residual_time)


def _backward(kept: Kept, *grads: Tensor) -> Grads:
    z, log_scale, residual, factor, c, residual_time = kept
    grad_z, scalars = torch.empty_like(z), _scalars(z, c, residual_time)
    grads = tuple(grad.contiguous() for grad in grads)
    partial = z.new_empty(len(grads), blocks_of(grads[0]), 2)
    matrices = (grad_z, z, residual, log_scale, factor, partial, *grads)
    run(points_backward, partial[..., 0].numel(), matrices, scalars, (z.size(-2),))
    by_scale, by_factor = partial.sum(1).unbind(-1)
    return grad_z, by_scale, _of_residual(grad_z, residual, residual_time), by_factor[0]


def _scalars(z: Tensor, c: float, residual_time: bool) -> tuple[float, ...]:
    """The least time, 1/c, what is added to a squared norm, how much of the residual's time counts.

    The last is 0 or 1.
    """
    least, epsilon = c**-0.5 + lorentz.TIME_MARGIN, lorentz.space_norm_epsilon(z.dtype)
    return least, 1 / c, epsilon, float(residual_time)


def _of_residual(grad_z: Tensor, residual: Tensor | None, residual_time: bool) -> Tensor | None:
    """The gradient of a residual: that of the numbers to which the residual was added."""
    if residual is None:
        return None
    grad = grad_z.view(residual.shape)
    # a copy: a hook or a clipping may write over one of two gradients
    return grad.clone() if residual_time else F.pad(grad[..., 1:], (1, 0))


@cuda.kernel()
def _linear(
    z: tl.tensor,
    residual: tl.tensor,
    at: tl.tensor,
    column: tl.tensor,
    inside: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
) -> Any:
    """Rows of a linear map with their residual, and their time coordinates."""
    value = tl.load(z + at, mask=inside, other=0.0)
    if residual is not None:
        added = tl.load(residual + at, mask=inside, other=0.0).to(value.dtype)
        if not RESIDUAL_TIME:
            added = tl.where(column == 0, 0.0, added)
        value += added
    return value, time_of(value, column)


@cuda.kernel("rows")
def points_forward_cuda(
    z: tl.tensor,
    residual: tl.tensor,
    numbers: tl.tensor,
    log_scale: tl.tensor,
    factor: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
    PROJECTIONS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """``z`` ``[N PROJECTIONS HEADS, D]`` to points; ``residual`` ``[N, D]`` where both are 1.

    ``numbers``: least time, 1/c, epsilon; ``log_scale`` ``[PROJECTIONS]``; with ``factor`` ``[]``
    the points of the first projection are written as ``factor (-t, s)``.
    """
    row, column, at, _, inside = lanes(rows, D, WIDTH, ROWS)
    value, time = _linear(z, residual, at, column, inside, RESIDUAL_TIME)
    least, inverse_c, epsilon = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    squared = space_product(value, value, column)
    projection = row // HEADS % PROJECTIONS
    scale = tl.exp(tl.load(log_scale + projection).to(value.dtype))
    reached = scale * tl.sigmoid(time) + least
    ratio = (reached * reached - inverse_c) / (squared + epsilon)
    made, space_scale = tl.sqrt(squared * ratio + inverse_c), tl.sqrt(ratio)
    if factor is not None:
        size = tl.load(factor).to(value.dtype)
        made *= tl.where(projection == 0, -size, 1.0)
        space_scale *= tl.where(projection == 0, size, 1.0)
    tl.store(out + at, with_time(made, value * space_scale[:, None], column), mask=inside)


@cuda.kernel("rows", "projection")
def points_backward_cuda(
    grad: tl.tensor,
    z: tl.tensor,
    residual: tl.tensor,
    numbers: tl.tensor,
    log_scale: tl.tensor,
    factor: tl.tensor,
    grad_z: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    projection: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
    PROJECTIONS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`points_forward` through one projection; ``grad`` ``[N HEADS, D]``.

    ``partial`` ``[programs, 2]``: of the log scale, and of the factor if it is given.
    """
    row, column, given_at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    # the rows of z have those of the other projections between them
    source = row + (row // HEADS) * ((PROJECTIONS - 1) * HEADS) + projection * HEADS
    at = source[:, None] * D + column
    value, time = _linear(z, residual, at, column, inside, RESIDUAL_TIME)
    given = tl.load(grad + given_at, mask=inside, other=0.0)
    by_made = time_of(given, column)
    squared = space_product(value, value, column)
    along = space_product(value, given, column)
    least, inverse_c, epsilon = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    scale = tl.exp(tl.load(log_scale + projection).to(value.dtype))
    sigmoid = tl.sigmoid(time)
    reached = scale * sigmoid + least
    inverse = 1 / (squared + epsilon)
    ratio = (reached * reached - inverse_c) * inverse
    root, made = tl.sqrt(ratio), tl.sqrt(squared * ratio + inverse_c)
    space_scale = root
    program = partial + tl.program_id(0) * 2
    if factor is not None:
        size = tl.load(factor).to(value.dtype)
        tl.store(program + 1, tl.sum(tl.where(exists, along * root - by_made * made, 0.0), axis=0))
        by_made *= -size
        along *= size
        space_scale *= size
    by_ratio = (along / root + by_made * squared / made) * 0.5
    by_squared = by_made * ratio / made - by_ratio * 2 * ratio * inverse
    by_reached = by_ratio * 2 * reached * inverse * scale * sigmoid
    tl.store(program, tl.sum(tl.where(exists, by_reached, 0.0), axis=0))
    by_time = by_reached * (1 - sigmoid)
    by_space = given * space_scale[:, None] + by_squared[:, None] * value
    tl.store(grad_z + at, with_time(by_time, by_space, column), mask=inside)


def _forward_cuda(z: Tensor, log_scale: Tensor, *others: Any) -> tuple[Made, Kept]:
    residual, factor, c, residual_time = others
    z, log_scale = z.contiguous(), log_scale.contiguous()
    residual = None if residual is None else residual.contiguous()
    numbers = cuda.device_constants(_scalars(z, c, residual_time)[:3], z)
    count, out = z.numel() // z.size(-1), torch.empty_like(z)
    args = (z, residual, numbers, log_scale, factor, out, count)
    cuda.launch_rows(points_forward_cuda, count, z, *args, **_options(z, residual_time))
    return out.unbind(-3), (z, log_scale, residual, factor, c, residual_time)


def _backward_cuda(kept: Kept, *grads: Tensor) -> Grads:
    z, log_scale, residual, factor, c, residual_time = kept
    grad_z, options = torch.empty_like(z), _options(z, residual_time)
    numbers = cuda.device_constants(_scalars(z, c, residual_time)[:3], z)
    count = z.numel() // z.size(-1) // len(grads)
    partial = z.new_empty(len(grads), cuda.programs(count, z.size(-1)), 2)
    for p, grad in enumerate(grads):
        given = (z, residual, numbers, log_scale, factor if p == 0 else None)
        args = (grad.contiguous(), *given, grad_z, partial[p], count, p)
        cuda.launch_rows(points_backward_cuda, count, z, *args, **options)
    # without a factor its column is not written, and its sum is not used
    by_scale, by_factor = partial[..., 0].sum(1), partial[0, :, 1].sum()
    return grad_z, by_scale, _of_residual(grad_z, residual, residual_time), by_factor


def _options(z: Tensor, residual_time: bool) -> dict[str, Any]:
    return {"RESIDUAL_TIME": residual_time, "PROJECTIONS": z.size(-3), "HEADS": z.size(-2)}


def _cases(draw: Draw) -> Iterator[Case]:
    one, three = draw.rows(1, 1, draw.width), draw.rows(3, 2, draw.width)
    factor, others = draw.scalar(0.7), (draw.c, True)
    yield "points", (one, draw(1), None, None, *others)
    yield "points of three projections", (three, draw(3), None, None, *others)
    yield "points with queries", (three, draw(3), None, factor, *others)
    yield "points with residual", (one, draw(1), draw.rows(), None, *others)
    yield "points with space residual", (one, draw(1), draw.rows(), None, draw.c, False)


POINTS = Operator(
    "points",
    plain_points,
    cases=_cases,
    cpu=Kernels(_forward, _backward),
    cuda=Kernels(_forward_cuda, _backward_cuda),
)
