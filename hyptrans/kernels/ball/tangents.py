"""Mobius addition and the maps at the origin of the Poincare ball, each in one pass on the CPU.

Between matrix products a layer of the ball has numbers per point beside its rows; in plain torch
every one of them is an operator. There are no kernels for CUDA yet: there the formulas run.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.functions import applied
from hyptrans.kernels.operands import Grads, Numbers


def add_tangents(u: Tensor, v: Tensor, *, c: float = 1.0, relu: bool = False) -> Tensor:
    """:func:`hyptrans.geometry.poincare.add_tangents`; ``v`` may be broadcast.

    With ``relu`` what comes out goes through ReLU.
    """
    u, v = at_least_float32(u), at_least_float32(v)
    if u.dtype != v.dtype or v.dim() > u.dim() or chosen(u, "tangents") != "numba":
        total = poincare.add_tangents(u, v, c=c)
        return F.relu(total) if relu else total
    if v.shape != u.shape[u.dim() - v.dim() :]:
        v = v.expand(u.shape)
    out: Tensor = applied(_Sum, u, v, relu, numbers_of(u, c))
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
    out: Tensor = applied(_Radial, x, inverse, numbers_of(x, c))
    return out


def numbers_of(like: Tensor, c: float) -> Numbers:
    """The ball's ``c``, the largest norm in the unit ball, and the unit of rounding."""
    return c, poincare.max_norm(like.dtype), torch.finfo(like.dtype).eps


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, relu: bool, numbers: Numbers) -> Tensor:
        u, v = u.contiguous(), v.contiguous()
        out = torch.empty_like(u)
        launcher("numba").add_forward(u, v, relu, numbers, out)
        if ctx is not None:
            ctx.save_for_backward(u, v, out if relu else None)
            ctx.numbers = numbers
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        u, v, made = ctx.saved_tensors
        grad_u, grad_v = torch.empty_like(u), torch.empty_like(v)
        launcher("numba").add_backward(grad.contiguous(), u, v, made, ctx.numbers, grad_v, grad_u)
        return grad_u, grad_v, None, None


class _Radial(torch.autograd.Function):
    """:func:`exp_origin`, or its inverse."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, inverse: bool, numbers: Numbers) -> Tensor:
        u = u.contiguous()
        out = torch.empty_like(u)
        launcher("numba").radial_forward(u, inverse, numbers, out)
        if ctx is not None:
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
