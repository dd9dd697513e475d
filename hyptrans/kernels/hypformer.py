"""Hypformer's points above a layer norm, from an update and the point that it is added to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import cuda
from hyptrans.kernels.cpu import BLOCK, blocks_of, matrix, read, run
from hyptrans.kernels.cuda import lanes, with_time
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


def norm_points(
    x: Tensor,
    update: Tensor,
    scale: lorentz.CurvatureLike,
    gain: Tensor,
    bias: Tensor,
    *,
    c: lorentz.CurvatureLike,
    epsilon: float,
) -> Tensor:
    """The points above ``LayerNorm(update + scale x_s)``.

    Shapes: x ``[..., D]``, update ``[..., D - 1]``, gain and bias ``[D - 1]`` -> ``[..., D]``.
    Source: Hypformer eq. 13 and 21.
    """
    x, update, gain, bias = (at_least_float32(t) for t in (x, update, gain, bias))
    alike = x.dtype == update.dtype == gain.dtype == bias.dtype
    alike = alike and x.shape == (*update.shape[:-1], update.size(-1) + 1)
    alike = alike and gain.shape == bias.shape == update.shape[-1:]
    alike = alike and not differs_by_row(scale) and not differs_by_row(c)
    apply = NORM_POINTS if alike else plain_norm_points
    made: Tensor = apply(update, x, as_scalar(scale), gain, bias, as_scalar(c), epsilon)
    return made


def plain_norm_points(
    update: Tensor,
    x: Tensor,
    scale: lorentz.CurvatureLike,
    gain: Tensor,
    bias: Tensor,
    c: lorentz.CurvatureLike,
    epsilon: float,
) -> Tensor:
    """:func:`norm_points` in plain torch."""
    normed = F.layer_norm(update + x[..., 1:] * scale, gain.shape, gain, bias, epsilon)
    return lorentz.lift(normed, c=c)


def norm_forward(block: int, pointer: Any) -> None:
    """Layer norm of an update and the scaled space part of a point, lifted.

    Matrices: points ``[N, d + 1]``, updates ``[N, d]``, gain and bias ``[1, d]``, new points.
    Scalars: 1/c, what is added to a variance, the scale.
    """
    job = read(pointer)
    x, update, gain = matrix(job, 0), matrix(job, 1), matrix(job, 2)[0]
    bias, out = matrix(job, 3)[0], matrix(job, 4)
    inverse_c, epsilon, scale = job.scalars[0], job.scalars[1], job.scalars[2]
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
    gradient of the updates, ``partial`` ``[blocks, 2 d + 2]`` (of gain, bias, scale and c). Scalars
    as there.
    """
    job = read(pointer)
    grad, x, update = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    gain, made, partial = matrix(job, 3)[0], matrix(job, 4), matrix(job, 7)
    grad_x, grad_update = matrix(job, 5), matrix(job, 6)
    inverse_c, epsilon, scale = job.scalars[0], job.scalars[1], job.scalars[2]
    rows, d = update.shape
    zero, one = x.dtype.type(0), x.dtype.type(1)
    share, of_c = one / x.dtype.type(d), x.dtype.type(-0.5) * inverse_c * inverse_c
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
        partial[block, 2 * d + 1] += of_c * by_time


def _forward(update: Tensor, x: Tensor, scale: Any, *others: Any) -> tuple[Made, Kept]:
    gain, bias, c, epsilon = others
    x, update, gain = x.contiguous(), update.contiguous(), gain.contiguous()
    out, scalars = torch.empty_like(x), (1 / float(c), epsilon, float(scale))
    run(norm_forward, blocks_of(x), (x, update, gain, bias.contiguous(), out), scalars)
    return out, (x, update, gain, out, scalars)


def _backward(kept: Kept, grad: Tensor) -> Grads:
    *operands, scalars = kept
    x, update, gain, _ = operands
    grad_x, grad_update, width = torch.empty_like(x), torch.empty_like(update), len(gain)
    partial = x.new_empty(blocks_of(x), 2 * width + 2)
    matrices = (grad.contiguous(), *operands, grad_x, grad_update, partial)
    run(norm_backward, len(partial), matrices, scalars)
    by_gain, by_bias, (by_scale, by_c) = partial.sum(0).split([width, width, 2])
    return grad_update, grad_x, by_scale, by_gain, by_bias, by_c


@cuda.kernel()
def _normed(
    x: tl.tensor,
    update: tl.tensor,
    scale: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    inside: tl.tensor,
    D: tl.constexpr,
    EPSILON: tl.constexpr,
) -> Any:
    """Normed sums of rows, the factors that norm them, ``x``, places of updates, what is space."""
    space, update_at = inside & (column > 0), row[:, None] * (D - 1) + column - 1
    point = tl.load(x + at, mask=space, other=0.0)
    both = tl.load(update + update_at, mask=space, other=0.0) + scale * point
    off = tl.where(space, both - tl.sum(both, axis=1)[:, None] / (D - 1), 0.0)
    slope = 1 / tl.sqrt(tl.sum(off * off, axis=1) / (D - 1) + EPSILON)
    return off * slope[:, None], slope, point, update_at, space


@cuda.kernel("rows")
def norm_forward_cuda(
    x: tl.tensor,
    update: tl.tensor,
    scale: tl.tensor,
    gain: tl.tensor,
    bias: tl.tensor,
    c: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    EPSILON: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Points ``[N, D]`` and updates ``[N, D - 1]`` to new points ``[N, D]``."""
    row, column, at, _, inside = lanes(rows, D, WIDTH, ROWS)
    factor = tl.load(scale).to(x.dtype.element_ty)
    normed, _, _, _, space = _normed(x, update, factor, row, column, at, inside, D, EPSILON)
    of_space = (column > 0) & (column < D)
    slope = tl.load(gain + column - 1, mask=of_space, other=0.0)
    level = tl.load(bias + column - 1, mask=of_space, other=0.0)
    value = tl.where(space, normed * slope + level, 0.0)
    inverse_c = 1 / tl.load(c).to(value.dtype)
    time = tl.sqrt(tl.sum(value * value, axis=1) + inverse_c)
    tl.store(out + at, with_time(time, value, column), mask=inside)


@cuda.kernel("rows")
def norm_backward_cuda(
    grad: tl.tensor,
    x: tl.tensor,
    update: tl.tensor,
    scale: tl.tensor,
    gain: tl.tensor,
    made: tl.tensor,
    c: tl.tensor,
    grad_x: tl.tensor,
    grad_update: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    EPSILON: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`norm_forward_cuda`.

    ``partial`` ``[programs, 2 D]``: of gain and bias, ``D - 1`` each, of the scale, of c.
    """
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    factor = tl.load(scale).to(x.dtype.element_ty)
    normed, slope, point, update_at, space = _normed(
        x, update, factor, row, column, at, inside, D, EPSILON
    )
    of_space = (column > 0) & (column < D)
    by_time = tl.load(grad + row * D, mask=exists, other=0.0)
    # a time of one keeps lanes without a row from dividing by zero
    by_time /= tl.load(made + row * D, mask=exists, other=1.0)
    value = tl.load(made + at, mask=space, other=0.0)
    by_value = tl.load(grad + at, mask=space, other=0.0) + by_time[:, None] * value
    program = partial + tl.program_id(0).to(tl.int64) * 2 * D
    of_gain, of_bias = tl.sum(by_value * normed, axis=0), tl.sum(by_value, axis=0)
    tl.store(program + column - 1, of_gain[None, :], mask=of_space)
    tl.store(program + column + D - 2, of_bias[None, :], mask=of_space)
    by_normed = by_value * tl.load(gain + column - 1, mask=of_space, other=0.0)
    level = tl.sum(by_normed, axis=1)[:, None] / (D - 1)
    along = tl.sum(by_normed * normed, axis=1)[:, None] / (D - 1)
    by_both = tl.where(space, slope[:, None] * (by_normed - level - along * normed), 0.0)
    tl.store(grad_update + update_at, by_both, mask=space)
    tl.store(grad_x + at, factor * by_both, mask=inside)
    tl.store(program + 2 * D - 2, tl.sum(tl.sum(by_both * point, axis=1), axis=0))
    inverse_c = 1 / tl.load(c).to(x.dtype.element_ty)
    tl.store(program + 2 * D - 1, tl.sum(by_time, axis=0) * -0.5 * inverse_c * inverse_c)


def _forward_cuda(update: Tensor, x: Tensor, scale: Any, *others: Any) -> tuple[Made, Kept]:
    gain, bias, c, epsilon = others
    x, update, gain = x.contiguous(), update.contiguous(), gain.contiguous()
    out, count = torch.empty_like(x), x.numel() // x.size(-1)
    scale, c = cuda.curvature(scale, x), cuda.curvature(c, x)
    args = (x, update, scale, gain, bias.contiguous(), c, out, count)
    cuda.launch_rows(norm_forward_cuda, count, x, *args, EPSILON=epsilon)
    return out, (x, update, scale, gain, out, c, epsilon)


def _backward_cuda(kept: Kept, grad: Tensor) -> Grads:
    *operands, epsilon = kept
    x, update, _, gain, *_ = operands
    grad_x, grad_update, width = torch.empty_like(x), torch.empty_like(update), len(gain)
    count = x.numel() // x.size(-1)
    partial = x.new_empty(cuda.programs(count, x.size(-1)), 2 * width + 2)
    args = (grad.contiguous(), *operands, grad_x, grad_update, partial, count)
    cuda.launch_rows(norm_backward_cuda, count, x, *args, EPSILON=epsilon)
    by_gain, by_bias, (by_scale, by_c) = partial.sum(0).split([width, width, 2])
    return grad_update, grad_x, by_scale, by_gain, by_bias, by_c


def _cases(draw: Draw) -> Iterator[Case]:
    x, gain, bias = draw.rows(draw.width + 1), draw(draw.width), draw(draw.width)
    parameters = (draw.scalar(0.7), gain, bias, draw.scalar(draw.c))
    yield "norm of points", (draw.rows(), x, *parameters, 1e-5)


NORM_POINTS = Operator(
    "norm of points",
    plain_norm_points,
    cases=_cases,
    cpu=Kernels(_forward, _backward),
    cuda=Kernels(_forward_cuda, _backward_cuda),
)
