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
from hyptrans.kernels.heads import cut, of_sums, points_of
from hyptrans.kernels.operands import MOST_PROJECTIONS, Grads, Numbers


def add_tangents(u: Tensor, v: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.add_tangents`; ``v`` may be broadcast."""
    u, v = at_least_float32(u), at_least_float32(v)
    if u.dtype != v.dtype or chosen(u, "tangents") != "numba" or v.dim() > u.dim():
        return poincare.add_tangents(u, v, c=c)
    if v.shape != u.shape[u.dim() - v.dim() :]:
        v = v.expand(u.shape)
    out: Tensor = _Sum.apply(u, v, _numbers(u, c))
    return out


def exp_origin(u: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.exp_origin`."""
    return _radial(u, c, inverse=False)


def log_origin(x: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.log_origin`."""
    return _radial(x, c, inverse=True)


def _radial(x: Tensor, c: float, *, inverse: bool) -> Tensor:
    x = at_least_float32(x)
    if chosen(x, "tangents") != "numba":
        return poincare.log_origin(x, c=c) if inverse else poincare.exp_origin(x, c=c)
    out: Tensor = _Radial.apply(x, inverse, _numbers(x, c))
    return out


def lift_heads(u: Tensor, heads: int, *, c: float = 1.0) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.poincare.lift_tangent` of the heads that tangents are cut into.

    Shapes: ``[B, T, P, H d]`` -> ``P`` tensors ``[B, H, T, d + 1]``.
    """
    u = at_least_float32(u)
    if u.size(2) > MOST_PROJECTIONS or chosen(u, "tangents") != "numba":
        return poincare.lift_tangent(cut(u, heads), c=c).unbind()
    return points_of(u, heads, "lift_tangent", _numbers(u, c), more=1)


def centroid_tangent(total: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.centroid_tangent` of heads.

    Shapes: ``[B, H, T, d + 1]`` -> ``[B, H, T, d]``, in memory positions before heads.
    """
    if chosen(total, "tangents") != "numba":
        return poincare.centroid_tangent(total, c=c)
    return of_sums(total, "centroid", _numbers(total, c))


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
