"""Space coordinates lifted to the hyperboloid, and time-like vectors scaled onto it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import cuda
from hyptrans.kernels.cpu import BLOCK, TILE, blocks_of, matrix, read, run
from hyptrans.kernels.cuda import lanes, space_product, time_of, with_time
from hyptrans.kernels.operator import (
    Case,
    Draw,
    Grads,
    Kept,
    Kernels,
    Made,
    Operator,
    as_scalar,
    differs_by_row,
)

if TYPE_CHECKING:
    import triton.language as tl  # type: ignore


def lift(space: Tensor, *, c: CurvatureLike = 1.0, relu: bool = False) -> Tensor:
    """:func:`hyptrans.geometry.lorentz.lift`: the points above space coordinates, or their ReLU.

    Shapes: ``[..., D - 1]`` -> ``[..., D]``.
    """
    apply = plain_lift if differs_by_row(c) else LIFT
    made: Tensor = apply(at_least_float32(space), as_scalar(c), relu)
    return made


def plain_lift(space: Tensor, c: CurvatureLike, relu: bool) -> Tensor:
    """:func:`lift` in plain torch."""
    return lorentz.lift(F.relu(space) if relu else space, c=c)


def normalize(v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.lorentz.normalize`: scale time-like vectors onto the hyperboloid.

    Shapes: ``[..., D]``.
    """
    apply = plain_normalize if differs_by_row(c) else NORMALIZE
    made: Tensor = apply(at_least_float32(v), as_scalar(c))
    return made


def plain_normalize(v: Tensor, c: CurvatureLike) -> Tensor:
    """:func:`normalize` in plain torch."""
    return lorentz.normalize(v, c=c)


def lift_forward(block: int, pointer: Any) -> None:
    """Rows ``[N, d - 1]``, or their ReLU, to points.

    Matrices: points, rows. Scalars: 1/c. Integers: whether ReLU is first.
    """
    job = read(pointer)
    out, space = matrix(job, 0), matrix(job, 1)
    rows, d = out.shape
    least = out.dtype.type(0) if job.integers[0] else out.dtype.type(-np.inf)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        squared = job.scalars[0]
        for j in range(d - 1):
            value = space[n, j]
            value = least if value < least else value
            squared += value * value
            out[n, j + 1] = value
        out[n, 0] = math.sqrt(squared)


def lift_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`lift_forward`.

    Matrices: gradient of the points, points, gradient of the rows, ``partial`` ``[blocks, 1]`` (of
    c). Scalars and integers as there.
    """
    job = read(pointer)
    grad, out, grad_space, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    rows, d = out.shape
    zero, times = out.dtype.type(0), out.dtype.type(0)
    least = zero if job.integers[0] else out.dtype.type(-np.inf)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        by_time = grad[n, 0] / out[n, 0]
        for j in range(1, d):
            value = out[n, j]
            by_value = grad[n, j] + by_time * value
            grad_space[n, j - 1] = zero if value <= least else by_value
        times += by_time
    partial[block, 0] = out.dtype.type(-0.5) * job.scalars[0] * job.scalars[0] * times


def _lift(space: Tensor, c: CurvatureLike, relu: bool) -> tuple[Made, Kept]:
    space = space.contiguous()
    out = space.new_empty(*space.shape[:-1], space.size(-1) + 1)
    inverse_c = 1 / float(c)
    run(lift_forward, blocks_of(out), (out, space), (inverse_c,), (relu,))
    return out, (out, inverse_c, relu)


def _lift_back(kept: Kept, grad: Tensor) -> Grads:
    out, inverse_c, relu = kept
    grad_space = out.new_empty(*out.shape[:-1], out.size(-1) - 1)
    partial = out.new_empty(blocks_of(out), 1)
    matrices = (grad.contiguous(), out, grad_space, partial)
    run(lift_backward, len(partial), matrices, (inverse_c,), (relu,))
    return grad_space, partial.sum()


@cuda.kernel("rows")
def lift_forward_cuda(
    space: tl.tensor,
    c: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    RELU: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Rows ``[N, D - 1]``, or their ReLU, to points ``[N, D]``."""
    row, column, at, _, inside = lanes(rows, D, WIDTH, ROWS)
    # a row of space coordinates has no time: every row before moves this one by one place
    source = space + at - row[:, None] - 1
    value = tl.load(source, mask=inside & (column > 0), other=0.0)
    if RELU:
        # written so that a NaN stays one
        value = tl.where(value < 0, 0.0, value)
    time = tl.sqrt(tl.sum(value * value, axis=1) + 1 / tl.load(c).to(value.dtype))
    tl.store(out + at, with_time(time, value, column), mask=inside)


@cuda.kernel("rows")
def lift_backward_cuda(
    grad: tl.tensor,
    out: tl.tensor,
    c: tl.tensor,
    grad_space: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    RELU: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`lift_forward_cuda`; ``partial`` ``[programs]``: of c."""
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    value = tl.load(out + at, mask=inside, other=0.0)
    given = tl.load(grad + at, mask=inside, other=0.0)
    by_time = time_of(given, column) / tl.load(out + row * D, mask=exists, other=1.0)
    inverse_c = 1 / tl.load(c).to(value.dtype)
    by_c = tl.sum(by_time, axis=0) * -0.5 * inverse_c * inverse_c
    tl.store(partial + tl.program_id(0), by_c)
    by_space = given + by_time[:, None] * value
    if RELU:
        by_space = tl.where(value <= 0, 0.0, by_space)
    target = grad_space + at - row[:, None] - 1
    tl.store(target, by_space, mask=inside & (column > 0))


def _lift_cuda(space: Tensor, c: CurvatureLike, relu: bool) -> tuple[Made, Kept]:
    space = space.contiguous()
    out = space.new_empty(*space.shape[:-1], space.size(-1) + 1)
    count, c = out.numel() // out.size(-1), cuda.curvature(c, space)
    args = (space, c, out, count)
    cuda.launch_rows(lift_forward_cuda, count, out, *args, RELU=relu)
    return out, (out, c, relu)


def _lift_back_cuda(kept: Kept, grad: Tensor) -> Grads:
    out, c, relu = kept
    grad_space = out.new_empty(*out.shape[:-1], out.size(-1) - 1)
    count = out.numel() // out.size(-1)
    partial = out.new_empty(cuda.programs(count, out.size(-1)))
    args = (grad.contiguous(), out, c, grad_space, partial, count)
    cuda.launch_rows(lift_backward_cuda, count, out, *args, RELU=relu)
    return grad_space, partial.sum()


def normalize_forward(block: int, pointer: Any) -> None:
    """Rows ``[N, d]`` onto the hyperboloid.

    Matrices: vectors, points. Scalars: 1/c, relative floor of ``|v|_L^2``.
    """
    job = read(pointer)
    v, out = matrix(job, 0), matrix(job, 1)
    inverse_c, floor = job.scalars[0], job.scalars[1]
    rows, d = v.shape
    zero = v.dtype.type(0)
    squares, scales = np.empty((2, TILE), v.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            squared = zero
            for j in range(1, d):
                squared += v[start + k, j] * v[start + k, j]
            squares[k] = squared
        for k in range(tile):
            squared = v[start + k, 0] * v[start + k, 0]
            scales[k] = math.sqrt(inverse_c / max(squared - squares[k], floor * squared))
            squares[k] = math.sqrt(squares[k] * scales[k] * scales[k] + inverse_c)
        for k in range(tile):
            scale = scales[k]
            for j in range(d):
                out[start + k, j] = v[start + k, j] * scale
            out[start + k, 0] = squares[k]


def normalize_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`normalize_forward`.

    Matrices: gradient of the points, vectors, gradient of the vectors, ``partial`` ``[blocks, 1]``
    (of c). Scalars as there.
    """
    job = read(pointer)
    grad, v, grad_v, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    inverse_c, floor = job.scalars[0], job.scalars[1]
    rows, d = v.shape
    zero, half = v.dtype.type(0), v.dtype.type(0.5)
    squares, alongs, scales, own, times, grad_times = np.empty((6, TILE), v.dtype)
    sum_inverse = zero
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n = start + k
            squared, along = zero, zero
            for j in range(1, d):
                squared += v[n, j] * v[n, j]
                along += v[n, j] * grad[n, j]
            squares[k], alongs[k] = squared, along
            times[k], grad_times[k] = v[n, 0], grad[n, 0]
        by_inverse = zero
        for k in range(tile):
            squared = times[k] * times[k]
            length = max(squared - squares[k], floor * squared)
            scale = math.sqrt(inverse_c / length)
            # of the space part: its own gradient and that of the time, which follows from it
            by_time = grad_times[k] / math.sqrt(squares[k] * scale * scale + inverse_c)
            along = alongs[k] * scale + by_time * squares[k] * scale * scale
            by_inverse += half * (along / inverse_c + by_time)
            along /= length
            time_like = length > floor * squared
            scales[k], own[k] = scale, by_time * scale * scale + (along if time_like else zero)
            squares[k] = along if time_like else along * floor
        sum_inverse += by_inverse
        for k in range(tile):
            n, scale, share = start + k, scales[k], own[k]
            for j in range(d):
                grad_v[n, j] = scale * grad[n, j] + share * v[n, j]
            grad_v[n, 0] = -squares[k] * times[k]
    partial[block, 0] = -sum_inverse * inverse_c * inverse_c


def _normalize(v: Tensor, c: CurvatureLike) -> tuple[Made, Kept]:
    v = v.contiguous()
    out = torch.empty_like(v)
    run(normalize_forward, blocks_of(v), (v, out), _inverse_and_floor(c, v))
    return out, (v, c)


def _normalize_back(kept: Kept, grad: Tensor) -> Grads:
    v, c = kept
    grad_v, partial = torch.empty_like(v), v.new_empty(blocks_of(v), 1)
    matrices = (grad.contiguous(), v, grad_v, partial)
    run(normalize_backward, len(partial), matrices, _inverse_and_floor(c, v))
    return grad_v, partial.sum()


def _inverse_and_floor(c: CurvatureLike, v: Tensor) -> tuple[float, float]:
    """1/c and the relative floor of ``|v|_L^2``."""
    return 1 / float(c), torch.finfo(v.dtype).eps


@cuda.kernel()
def _vectors(
    v: tl.tensor,
    c: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    exists: tl.tensor,
    inside: tl.tensor,
    D: tl.constexpr,
    FLOOR: tl.constexpr,
) -> Any:
    """Rows to normalize, their times, ``|v_s|^2``, ``|v|_L^2`` or its floor, whether that, 1/c."""
    value = tl.load(v + at, mask=inside, other=0.0)
    squares = space_product(value, value, column)
    # a time of one keeps lanes without a row from dividing zero by zero
    time = tl.load(v + row * D, mask=exists, other=1.0)
    length, least = time * time - squares, FLOOR * time * time
    # written so that a NaN stays one
    floored, length = length <= least, tl.where(length < least, least, length)
    return value, time, squares, length, floored, 1 / tl.load(c).to(value.dtype)


@cuda.kernel("rows")
def normalize_forward_cuda(
    v: tl.tensor,
    c: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    FLOOR: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Rows ``[N, D]`` onto the hyperboloid; ``FLOOR``: relative floor of ``|v|_L^2``."""
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    value, _, squares, length, _, inverse_c = _vectors(
        v, c, row, column, at, exists, inside, D, FLOOR
    )
    scale = tl.sqrt(inverse_c / length)
    made = tl.sqrt(squares * scale * scale + inverse_c)
    tl.store(out + at, with_time(made, value * scale[:, None], column), mask=inside)


@cuda.kernel("rows")
def normalize_backward_cuda(
    grad: tl.tensor,
    v: tl.tensor,
    c: tl.tensor,
    grad_v: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    FLOOR: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`normalize_forward`; ``partial`` ``[programs]``: of c."""
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    value, time, squares, length, floored, inverse_c = _vectors(
        v, c, row, column, at, exists, inside, D, FLOOR
    )
    given = tl.load(grad + at, mask=inside, other=0.0)
    along = space_product(value, given, column)
    scale = tl.sqrt(inverse_c / length)
    # of the space part: its own gradient and that of the time, which follows from it
    by_made = time_of(given, column) / tl.sqrt(squares * scale * scale + inverse_c)
    along = along * scale + by_made * squares * scale * scale
    by_inverse = tl.where(exists, (along / inverse_c + by_made) * 0.5, 0.0)
    by_c = -tl.sum(by_inverse, axis=0) * inverse_c * inverse_c
    tl.store(partial + tl.program_id(0), by_c)
    along /= length
    share = by_made * scale * scale + tl.where(floored, 0.0, along)
    by_time = -tl.where(floored, along * FLOOR, along) * time
    by_space = scale[:, None] * given + share[:, None] * value
    tl.store(grad_v + at, with_time(by_time, by_space, column), mask=inside)


def _normalize_cuda(v: Tensor, c: CurvatureLike) -> tuple[Made, Kept]:
    v = v.contiguous()
    count, out, floor = v.numel() // v.size(-1), torch.empty_like(v), torch.finfo(v.dtype).eps
    args = (v, cuda.curvature(c, v), out, count)
    cuda.launch_rows(normalize_forward_cuda, count, v, *args, FLOOR=floor)
    return out, (v, c)


def _normalize_back_cuda(kept: Kept, grad: Tensor) -> Grads:
    v, c = kept
    count, grad_v, floor = v.numel() // v.size(-1), torch.empty_like(v), torch.finfo(v.dtype).eps
    partial = v.new_empty(cuda.programs(count, v.size(-1)))
    args = (grad.contiguous(), v, cuda.curvature(c, v), grad_v, partial, count)
    cuda.launch_rows(normalize_backward_cuda, count, v, *args, FLOOR=floor)
    return grad_v, partial.sum()


def _lift_cases(draw: Draw) -> Iterator[Case]:
    yield "lift", (draw.rows(), draw.scalar(draw.c), False)
    yield "lift after ReLU", (draw.rows(), draw.scalar(draw.c), True)


def _normalize_cases(draw: Draw) -> Iterator[Case]:
    # nearer to the light cone float32 has too few digits of <v, v> left to compare gradients by
    space = draw.rows(max(1, draw.width - 1))
    time = space.norm(dim=-1, keepdim=True) + 0.5
    yield "normalize", (torch.cat([time, space], dim=-1), draw.scalar(draw.c))


LIFT = Operator(
    "lift",
    plain_lift,
    cases=_lift_cases,
    cpu=Kernels(_lift, _lift_back),
    cuda=Kernels(_lift_cuda, _lift_back_cuda),
)
NORMALIZE = Operator(
    "normalize",
    plain_normalize,
    cases=_normalize_cases,
    cpu=Kernels(_normalize, _normalize_back),
    cuda=Kernels(_normalize_cuda, _normalize_back_cuda),
)
