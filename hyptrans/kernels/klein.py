"""Points read from plain numbers, and their midpoints, each in one pass on the CPU.

There are no kernels for CUDA yet: there the formulas of :mod:`hyptrans.geometry.klein` run.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry import klein
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.operands import Heads, Numbers
from hyptrans.kernels.tangents import MOST_PROJECTIONS, Grads, cut


def polar_heads(numbers: Tensor, heads: int, max_radius: float) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.klein.polar_points` of the numbers of each head.

    Shapes: ``[B, T, P, H n]`` -> ``P`` tensors ``[B, H, T, n]``.
    """
    numbers = at_least_float32(numbers)
    if numbers.size(2) > MOST_PROJECTIONS or chosen(numbers) != "numba":
        return klein.polar_points(cut(numbers, heads), max_radius).unbind()
    out: tuple[Tensor, ...] = _PolarHeads.apply(numbers, heads, max_radius)
    return out


def midpoint_of_sum(total: Tensor) -> Tensor:
    """:func:`hyptrans.geometry.klein.midpoint_of_sum` of heads.

    Shapes: ``[B, H, T, D]`` -> ``[B, H, T, D - 1]``, in memory positions before heads.
    """
    if chosen(total) != "numba":
        return klein.midpoint_of_sum(total)
    out: Tensor = _Midpoint.apply(total)
    return out.transpose(1, 2)


class _PolarHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given: Tensor, heads: int, max_radius: float) -> tuple[Tensor, ...]:
        given = given.contiguous()
        batch, length, projections, width = given.shape
        sizes: Heads = (batch, length, projections, heads)
        numbers: Numbers = (max_radius, klein.DIRECTION_EPSILON)
        size = width // heads
        out = given.new_empty(projections, batch, heads, length, size)
        launcher("numba").polar_forward(given.view(-1, size), sizes, numbers, out)
        ctx.save_for_backward(given)
        ctx.sizes, ctx.numbers = sizes, numbers
        return out.unbind()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        (given,) = ctx.saved_tensors
        out = torch.empty_like(given)
        size = given.size(-1) // ctx.sizes[3]
        launcher("numba").polar_backward(
            grads, given.view(-1, size), ctx.sizes, ctx.numbers, out.view(-1, size)
        )
        return out, None, None


class _Midpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, total: Tensor) -> Tensor:
        total = total.contiguous()
        batch, heads, length, width = total.shape
        out = total.new_empty(batch, length, heads, width - 1)
        ctx.sizes = (batch, length, 1, heads)
        launcher("numba").midpoint_forward(total, ctx.sizes, (klein.LEAST_TIME,), out)
        ctx.save_for_backward(total)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (total,) = ctx.saved_tensors
        out = torch.empty_like(total)
        launcher("numba").midpoint_backward(
            grad.contiguous(), total, ctx.sizes, (klein.LEAST_TIME,), out
        )
        return out
