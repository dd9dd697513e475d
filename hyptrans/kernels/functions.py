"""The operators as autograd functions around a backend's kernels."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry import lorentz
from hyptrans.kernels.backend import Backend, launcher
from hyptrans.kernels.operands import Grads, Numbers, PointOperands


def applied(function: type[torch.autograd.Function], *args: Any) -> Any:
    """Apply a function; without the bookkeeping of autograd where no gradient is wanted.

    Its ``forward`` then gets None in place of the context.
    """
    if torch.is_grad_enabled():
        return function.apply(*args)
    return function.forward(None, *args)


def points(
    backend: Backend,
    z: Tensor,
    log_scale: Tensor,
    residual: Tensor | None,
    query_factor: Tensor | None,
    c: float,
    residual_time: bool,
) -> tuple[Tensor, ...]:
    """See :func:`hyptrans.kernels.operators.points`."""
    epsilon = lorentz.space_norm_epsilon(z.dtype)
    numbers = (c**-0.5 + lorentz.TIME_MARGIN, 1 / c, epsilon, float(residual_time))
    out: tuple[Tensor, ...] = applied(
        _Points, backend, z, residual, log_scale, query_factor, numbers
    )
    return out


def normalize(backend: Backend, v: Tensor, c: lorentz.CurvatureLike) -> Tensor:
    """See :func:`hyptrans.geometry.lorentz.normalize`."""
    out: Tensor = applied(_FromRows, backend, False, v, c)
    return out


def lift(backend: Backend, space: Tensor, c: lorentz.CurvatureLike) -> Tensor:
    """See :func:`hyptrans.geometry.lorentz.lift`."""
    out: Tensor = applied(_FromRows, backend, True, space, c)
    return out


def relu_dropout(backend: Backend, x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
    """See :func:`hyptrans.kernels.operators.relu_dropout`; ``0 < p < 1``."""
    out: Tensor = applied(_ReluDropout, backend, x, p, relu, seed)
    return out


def kept_by(p: float) -> tuple[int, float]:
    """The least hash of a number that dropout keeps, and the scale of such a number."""
    return min(round(p * 2**32), 2**32 - 1), 1 / (1 - p)


def drawn_seed() -> int:
    """A seed for the hashes of dropout, drawn by torch's generator."""
    return int(torch.randint(2**63 - 1, ()))


class _Points(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, *given: Any) -> tuple[Tensor, ...]:
        operands = _contiguous(*given)
        out = torch.empty_like(operands.z)
        launcher(backend).points_forward(operands, out)
        if ctx is not None:
            _, *others, ctx.numbers = given
            ctx.backend = backend
            ctx.save_for_backward(operands.z, *others)
        return out.unbind(-3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        z, residual, log_scale, factor = ctx.saved_tensors
        operands = _contiguous(z, residual, log_scale, factor, ctx.numbers)
        grad_z = torch.empty_like(z)
        by_scale, by_factor = launcher(ctx.backend).points_backward(grads, operands, grad_z)
        grad_residual = None
        if residual is not None:
            grad_residual = grad_z.view(residual.shape)
            if not operands.residual_time:
                grad_residual = grad_residual.clone()
                grad_residual[..., 0] = 0
        grad_factor = None if factor is None else by_factor
        return None, grad_z, grad_residual, by_scale, grad_factor, None


def _contiguous(
    z: Tensor, residual: Tensor | None, log_scale: Tensor, factor: Tensor | None, numbers: Numbers
) -> PointOperands:
    if residual is not None:
        residual = residual.contiguous()
    return PointOperands(z.contiguous(), residual, log_scale.contiguous(), factor, numbers)


class _FromRows(torch.autograd.Function):
    """:func:`lift` or :func:`normalize`: points from rows, at a curvature that may be learned."""

    @staticmethod
    def forward(
        ctx: Any, backend: Backend, lifts: bool, rows: Tensor, c: lorentz.CurvatureLike
    ) -> Tensor:
        kernels, rows = launcher(backend), rows.contiguous()
        if lifts:
            out = rows.new_empty(*rows.shape[:-1], rows.size(-1) + 1)
            kernels.lift_forward(rows, c, out)
        else:
            out = torch.empty_like(rows)
            kernels.normalize_forward(rows, c, out)
        if ctx is not None:
            learned = isinstance(c, Tensor)
            ctx.backend, ctx.lifts, ctx.c = backend, lifts, None if learned else c
            ctx.save_for_backward(out if lifts else rows, *([c] if learned else []))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        kept, *learned = ctx.saved_tensors
        kernels, grad, c = launcher(ctx.backend), grad.contiguous(), (*learned, ctx.c)[0]
        if ctx.lifts:
            grad_rows = kept.new_empty(*kept.shape[:-1], kept.size(-1) - 1)
            by_inverse = kernels.lift_backward(grad, kept, grad_rows)
        else:
            grad_rows = torch.empty_like(kept)
            by_inverse = kernels.normalize_backward(grad, kept, c, grad_rows)
        return None, None, grad_rows, -by_inverse / c.square() if learned else None


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        threshold, scale = kept_by(p)
        launcher(backend).dropout_forward(x, seed, threshold, scale, relu, out)
        if ctx is not None:
            ctx.backend, ctx.kept = backend, (seed, threshold, scale)
            ctx.save_for_backward(*([out] if relu else []))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        seed, threshold, scale = ctx.kept
        grad = grad.contiguous()
        grad_x = torch.empty_like(grad)
        kernels = launcher(ctx.backend)
        if ctx.saved_tensors:
            kernels.relu_dropout_backward(grad, ctx.saved_tensors[0], scale, grad_x)
        else:
            kernels.dropout_backward(grad, seed, threshold, scale, grad_x)
        return None, grad_x, None, None, None
