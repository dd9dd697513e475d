"""Mobius addition and the maps at the origin of the Poincare ball, each in one pass on the CPU.

Between matrix products a layer of the ball has numbers per point beside its rows; in plain torch
every one of them is an operator. There are no kernels for CUDA yet: there the formulas run.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.operands import Heads, Numbers

Grads = tuple[Tensor | None, ...]

MOST_PROJECTIONS = 4
"""More at a time are left to plain torch; a job's matrices are limited."""


def add_tangents(u: Tensor, v: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.add_tangents`; ``v`` may be broadcast."""
    u, v = at_least_float32(u), at_least_float32(v)
    if u.dtype != v.dtype or chosen(u) != "numba" or v.dim() > u.dim():
        return poincare.add_tangents(u, v, c=c)
    if v.shape != u.shape[u.dim() - v.dim() :]:
        v = v.expand(u.shape)
    out: Tensor = _Sum.apply(u, v, _numbers(u, c))
    return out


def exp_origin(u: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.exp_origin`."""
    u = at_least_float32(u)
    if chosen(u) != "numba":
        return poincare.exp_origin(u, c=c)
    out: Tensor = _Radial.apply(u, False, _numbers(u, c))
    return out


def log_origin(x: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.log_origin`."""
    x = at_least_float32(x)
    if chosen(x) != "numba":
        return poincare.log_origin(x, c=c)
    out: Tensor = _Radial.apply(x, True, _numbers(x, c))
    return out


def lift_heads(u: Tensor, heads: int, *, c: float = 1.0) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.poincare.lift_tangent` of the heads that tangents are cut into.

    Shapes: ``[B, T, P, H d]`` -> ``P`` tensors ``[B, H, T, d + 1]``.
    """
    u = at_least_float32(u)
    if u.size(2) > MOST_PROJECTIONS or chosen(u) != "numba":
        return poincare.lift_tangent(cut(u, heads), c=c).unbind()
    out: tuple[Tensor, ...] = _LiftHeads.apply(u, heads, _numbers(u, c))
    return out


def cut(u: Tensor, heads: int) -> Tensor:
    """Tangents in equal parts: ``[B, T, P, H d]`` -> ``[P, B, H, T, d]``."""
    return u.unflatten(-1, (heads, -1)).permute(2, 0, 3, 1, 4)


def centroid_tangent(total: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.centroid_tangent` of heads.

    Shapes: ``[B, H, T, d + 1]`` -> ``[B, H, T, d]``, in memory positions before heads.
    """
    if chosen(total) != "numba":
        return poincare.centroid_tangent(total, c=c)
    out: Tensor = _Centroid.apply(total, _numbers(total, c))
    return out.transpose(1, 2)


def _numbers(like: Tensor, c: float) -> Numbers:
    bound = 1 - poincare.MARGINS[like.dtype]
    return c, bound, torch.finfo(like.dtype).eps, poincare.LEAST_TOTAL


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, numbers: Numbers) -> Tensor:
        u, v = u.contiguous(), v.contiguous()
        out = torch.empty_like(u)
        launcher("numba").add_forward(u, v, numbers, out)
        ctx.save_for_backward(u, v)
        ctx.numbers = numbers
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        u, v = ctx.saved_tensors
        grad_u, grad_v = torch.empty_like(u), torch.empty_like(v)
        launcher("numba").add_backward(grad.contiguous(), u, v, ctx.numbers, grad_v, grad_u)
        return grad_u, grad_v, None


class _Radial(torch.autograd.Function):
    """:func:`exp_origin`, or its inverse."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, inverse: bool, numbers: Numbers) -> Tensor:
        u = u.contiguous()
        out = torch.empty_like(u)
        launcher("numba").radial_forward(u, inverse, numbers, out)
        ctx.save_for_backward(u)
        ctx.inverse, ctx.numbers = inverse, numbers
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        (u,) = ctx.saved_tensors
        out = torch.empty_like(u)
        launcher("numba").radial_backward(grad.contiguous(), u, ctx.inverse, ctx.numbers, out)
        return out, None, None


class _LiftHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, heads: int, numbers: Numbers) -> tuple[Tensor, ...]:
        u = u.contiguous()
        batch, length, projections, width = u.shape
        sizes: Heads = (batch, length, projections, heads)
        out = u.new_empty(projections, batch, heads, length, width // heads + 1)
        launcher("numba").lift_tangent_forward(u.view(-1, width // heads), sizes, numbers, out)
        ctx.save_for_backward(u)
        ctx.sizes, ctx.numbers = sizes, numbers
        return out.unbind()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        (u,) = ctx.saved_tensors
        out = torch.empty_like(u)
        size = u.size(-1) // ctx.sizes[3]
        launcher("numba").lift_tangent_backward(
            grads, u.view(-1, size), ctx.sizes, ctx.numbers, out.view(-1, size)
        )
        return out, None, None


class _Centroid(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, total: Tensor, numbers: Numbers) -> Tensor:
        total = total.contiguous()
        batch, heads, length, width = total.shape
        out = total.new_empty(batch, length, heads, width - 1)
        ctx.sizes, ctx.numbers = (batch, length, 1, heads), numbers
        launcher("numba").centroid_forward(total, ctx.sizes, numbers, out)
        ctx.save_for_backward(total)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        (total,) = ctx.saved_tensors
        out = torch.empty_like(total)
        launcher("numba").centroid_backward(grad.contiguous(), total, ctx.sizes, ctx.numbers, out)
        return out, None
