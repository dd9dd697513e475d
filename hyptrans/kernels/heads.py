"""Numbers of all heads to points of each, and sums of each to numbers of all, on the CPU.

What a point or a sum becomes is a kernel's; where heads lie in memory is the same for all of them.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.kernels.backend import launcher
from hyptrans.kernels.functions import applied
from hyptrans.kernels.operands import Grads, Heads, Numbers


def cut(numbers: Tensor, heads: int) -> Tensor:
    """Numbers in equal parts: ``[B, T, P, H n]`` -> ``[P, B, H, T, n]``."""
    return numbers.unflatten(-1, (heads, -1)).permute(2, 0, 3, 1, 4)


def points_of(
    given: Tensor, heads: int, kernel: str, numbers: Numbers, *, more: int
) -> tuple[Tensor, ...]:
    """What a kernel makes of the numbers of each head, each of which gets ``more`` numbers.

    Shapes: ``[B, T, P, H n]`` -> ``P`` tensors ``[B, H, T, n + more]``.
    """
    out: tuple[Tensor, ...] = applied(_Points, given, heads, kernel, numbers, more)
    return out


def of_sums(total: Tensor, kernel: str, numbers: Numbers) -> Tensor:
    """What a kernel makes of the sum of points of each head, which loses its time.

    Shapes: ``[B, H, T, d + 1]`` -> ``[B, H, T, d]``, in memory positions before heads.
    """
    out: Tensor = applied(_OfSums, total, kernel, numbers)
    return out.transpose(1, 2)


def _launched(kernel: str, way: str) -> Any:
    return getattr(launcher("numba"), f"{kernel}_{way}")


class _Points(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, given: Tensor, heads: int, kernel: str, numbers: Numbers, more: int
    ) -> tuple[Tensor, ...]:
        given = given.contiguous()
        batch, length, projections, width = given.shape
        size = width // heads
        sizes: Heads = (batch, length, projections, heads)
        out = given.new_empty(projections, batch, heads, length, size + more)
        _launched(kernel, "forward")(given.view(-1, size), sizes, numbers, out)
        if ctx is not None:
            ctx.save_for_backward(given)
            ctx.kernel, ctx.sizes, ctx.numbers = kernel, sizes, numbers
        return out.unbind()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        (given,) = ctx.saved_tensors
        out = torch.empty_like(given)
        size = given.size(-1) // ctx.sizes[3]
        _launched(ctx.kernel, "backward")(
            grads, given.view(-1, size), ctx.sizes, ctx.numbers, out.view(-1, size)
        )
        return out, None, None, None, None


class _OfSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, total: Tensor, kernel: str, numbers: Numbers) -> Tensor:
        total = total.contiguous()
        batch, heads, length, width = total.shape
        out = total.new_empty(batch, length, heads, width - 1)
        sizes: Heads = (batch, length, 1, heads)
        _launched(kernel, "forward")(total, sizes, numbers, out)
        if ctx is not None:
            ctx.save_for_backward(total)
            ctx.kernel, ctx.sizes, ctx.numbers = kernel, sizes, numbers
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        (total,) = ctx.saved_tensors
        out = torch.empty_like(total)
        _launched(ctx.kernel, "backward")(grad.contiguous(), total, ctx.sizes, ctx.numbers, out)
        return out, None, None
