"""The lift of space coordinates onto the hyperboloid, in one pass forward and one backward."""

import math
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import backend, no_second_derivative, one_number
from hyptrans.kernels.cpu import BLOCK, blocks_of, matrix, read, run


def lift(space: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Return the point above given space coordinates: :func:`hyptrans.geometry.lorentz.lift`.

    Shapes: ``[..., D - 1]`` -> ``[..., D]``.
    """
    space = at_least_float32(space)
    # without a gradient the formula is as fast, and faster on the few rows of a decoding step
    if not torch.is_grad_enabled() or backend(space) == "eager" or not one_number(c):
        return lorentz.lift(space, c=c)
    made: Tensor = _Lift.apply(space, c)
    return made


class _Lift(torch.autograd.Function):
    """Kernels of :func:`lift`."""

    @staticmethod
    def forward(ctx: Any, space: Tensor, c: CurvatureLike) -> Tensor:
        space = space.contiguous()
        out = space.new_empty(*space.shape[:-1], space.size(-1) + 1)
        run(lift_forward, (space, out), (1 / float(c),))
        ctx.save_for_backward(out, c if isinstance(c, Tensor) else None)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        if torch.is_grad_enabled():
            raise no_second_derivative()
        out, learned = ctx.saved_tensors
        grad = grad.contiguous()
        grad_space = out.new_empty(*out.shape[:-1], out.size(-1) - 1)
        partial = out.new_empty(blocks_of(grad_space))
        run(lift_backward, (grad_space, grad, out, partial.unsqueeze(-1)))
        if learned is None:
            return grad_space, None
        return grad_space, (-partial.sum() / (2 * float(learned) ** 2)).view(learned.shape)


def lift_forward(block: int, pointer: Any) -> None:
    """Compute the points above rows ``[N, d]``.

    Matrices: space coordinates, points ``[N, d + 1]``. Scalars: 1/c.
    """
    job = read(pointer)
    space, out = matrix(job, 0), matrix(job, 1)
    rows, d = space.shape
    inverse_c, zero = job.scalars[0], space.dtype.type(0)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        squared = zero
        for j in range(d):
            value = space[n, j]
            out[n, j + 1] = value
            squared += value * value
        out[n, 0] = math.sqrt(squared + inverse_c)


def lift_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`lift_forward`.

    Matrices: gradient of the space coordinates ``[N, d]``, gradient of the points, points,
    ``partial`` ``[blocks, 1]``: twice the gradient of 1/c.
    """
    job = read(pointer)
    grad_space, grad, out, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    rows, d = grad_space.shape
    total = grad.dtype.type(0)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        by_time = grad[n, 0] / out[n, 0]
        total += by_time
        for j in range(d):
            grad_space[n, j] = grad[n, j + 1] + by_time * out[n, j + 1]
    partial[block, 0] = total
