"""The operators as autograd functions around a backend's kernels."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry import lorentz
from hyptrans.kernels.backend import Backend, launcher

Grads = tuple[Tensor | None, ...]


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
    out: tuple[Tensor, ...] = _run(
        _Points, backend, z, log_scale, residual, query_factor, c, residual_time
    )
    return out


def normalize(backend: Backend, v: Tensor, c: lorentz.Curvature) -> Tensor:
    """See :func:`hyptrans.geometry.lorentz.normalize`."""
    out: Tensor = _run(_Normalize, backend, v, c)
    return out


def lift(backend: Backend, space: Tensor, c: lorentz.Curvature) -> Tensor:
    """See :func:`hyptrans.geometry.lorentz.lift`."""
    out: Tensor = _run(_Lift, backend, space, c)
    return out


def relu_dropout(backend: Backend, x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
    """See :func:`hyptrans.kernels.operators.relu_dropout`; ``0 < p < 1``."""
    out: Tensor = _run(_ReluDropout, backend, x, p, relu, seed)
    return out


def _run(function: type[torch.autograd.Function], *args: Any) -> Any:
    """Apply a function; without the bookkeeping of autograd where no gradient is wanted."""
    if torch.is_grad_enabled():
        return function.apply(*args)
    return function.forward(None, *args)


class _Points(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        backend: Backend,
        z: Tensor,
        log_scale: Tensor,
        residual: Tensor | None,
        query_factor: Tensor | None,
        c: float,
        residual_time: bool,
    ) -> tuple[Tensor, ...]:
        z = z.contiguous()
        numbers = (
            c**-0.5 + lorentz.TIME_MARGIN,
            1 / c,
            lorentz.SPACE_NORM_EPSILON,
            float(residual_time),
        )
        out = torch.empty_like(z)
        launcher(backend).points_forward(z, residual, log_scale, query_factor, numbers, out)
        if ctx is not None:
            ctx.backend, ctx.numbers, ctx.residual_time = backend, numbers, residual_time
            ctx.save_for_backward(z, residual, log_scale, query_factor)
        return out.unbind(-3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        z, residual, log_scale, factor = ctx.saved_tensors
        grad_z = torch.empty_like(z)
        by_scale, by_factor = launcher(ctx.backend).points_backward(
            grads, z, residual, log_scale, factor, ctx.numbers, grad_z
        )
        grad_residual = None
        if residual is not None:
            grad_residual = grad_z.view(residual.shape)
            if not ctx.residual_time:
                grad_residual = grad_residual.clone()
                grad_residual[..., 0] = 0
        grad_factor = None if factor is None else by_factor
        return None, grad_z, by_scale, grad_residual, grad_factor, None, None


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, v: Tensor, c: lorentz.Curvature) -> Tensor:
        v = v.contiguous()
        out = torch.empty_like(v)
        launcher(backend).normalize_forward(v, c, out)
        if ctx is not None:
            ctx.backend = backend
            _save(ctx, v, c)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        v, c = _saved(ctx)
        grad_v = torch.empty_like(v)
        by_inverse = launcher(ctx.backend).normalize_backward(grad.contiguous(), v, c, grad_v)
        return None, grad_v, _by_curvature(by_inverse, c)


class _Lift(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, space: Tensor, c: lorentz.Curvature) -> Tensor:
        out = space.new_empty(*space.shape[:-1], space.size(-1) + 1)
        launcher(backend).lift_forward(space.contiguous(), c, out)
        if ctx is not None:
            ctx.backend = backend
            _save(ctx, out, c)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        out, c = _saved(ctx)
        grad_space = out.new_empty(*out.shape[:-1], out.size(-1) - 1)
        by_inverse = launcher(ctx.backend).lift_backward(grad.contiguous(), out, grad_space)
        return None, grad_space, _by_curvature(by_inverse, c)


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        scale = 1 / (1 - p)
        threshold = min(round(p * 2**32), 2**32 - 1)
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


def _save(ctx: Any, points: Tensor, c: lorentz.Curvature) -> None:
    """Save points and a curvature, which is a tensor only where it may be learned."""
    ctx.c = None if isinstance(c, Tensor) else c
    ctx.save_for_backward(points, *([c] if isinstance(c, Tensor) else []))


def _saved(ctx: Any) -> tuple[Tensor, lorentz.Curvature]:
    points, *curvature = ctx.saved_tensors
    return points, curvature[0] if curvature else ctx.c


def _by_curvature(by_inverse: Tensor, c: lorentz.Curvature) -> Tensor | None:
    """Gradient of a learned ``c`` from that of ``1/c``."""
    return -by_inverse / c.square() if isinstance(c, Tensor) else None
