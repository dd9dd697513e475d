"""The operators as autograd functions around a backend's kernels."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry import lorentz
from hyptrans.kernels.backend import Backend, launcher
from hyptrans.kernels.eager import TIME_MARGIN

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
    out: tuple[Tensor, ...] = _Points.apply(
        backend, z, log_scale, residual, query_factor, c, residual_time
    )
    return out


def normalize(backend: Backend, v: Tensor, c: lorentz.Curvature) -> Tensor:
    """See :func:`hyptrans.geometry.lorentz.normalize`."""
    out: Tensor = _Normalize.apply(backend, v, c)
    return out


def lift(backend: Backend, space: Tensor, c: lorentz.Curvature) -> Tensor:
    """See :func:`hyptrans.geometry.lorentz.lift`."""
    out: Tensor = _Lift.apply(backend, space, c)
    return out


def relu_dropout(backend: Backend, x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
    """See :func:`hyptrans.kernels.operators.relu_dropout`; ``0 < p < 1``."""
    out: Tensor = _ReluDropout.apply(backend, x, p, relu, seed)
    return out


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
        rows = z.view(-1, *z.shape[-3:])
        added = z.new_empty(0, z.size(-1)) if residual is None else _rows(residual)
        factor = z.new_empty(0) if query_factor is None else query_factor.reshape(1)
        numbers = z.new_tensor(
            [c**-0.5 + TIME_MARGIN, 1 / c, lorentz.SPACE_NORM_EPSILON, float(residual_time)]
        )
        scale = log_scale.exp()
        out = torch.empty_like(z)
        launcher(backend).points_forward(rows, added, numbers, scale, factor, out.view_as(rows))
        ctx.backend, ctx.residual_time = backend, residual_time
        ctx.residual_shape = None if residual is None else residual.shape
        ctx.save_for_backward(z, added, numbers, scale, factor)
        return out.unbind(-3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        z, added, numbers, scale, factor = ctx.saved_tensors
        rows = z.view(-1, *z.shape[-3:])
        grad_z = torch.empty_like(z)
        by_scale, by_factor = launcher(ctx.backend).points_backward(
            tuple(g.reshape(-1, *z.shape[-2:]) for g in grads),
            rows,
            added,
            numbers,
            scale,
            factor,
            grad_z.view_as(rows),
        )
        grad_residual = None
        if ctx.residual_shape is not None:
            grad_residual = grad_z.view(ctx.residual_shape)
            if not ctx.residual_time:
                grad_residual = grad_residual.clone()
                grad_residual[..., 0] = 0
        grad_factor = by_factor if factor.numel() else None
        return None, grad_z, by_scale, grad_residual, grad_factor, None, None


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, v: Tensor, c: lorentz.Curvature) -> Tensor:
        v = v.contiguous()
        inverse_c = _inverse(c, v)
        numbers = torch.stack([inverse_c, inverse_c.new_tensor(torch.finfo(v.dtype).eps)])
        out = torch.empty_like(v)
        launcher(backend).normalize_forward(_rows(v), numbers, _rows(out))
        ctx.backend = backend
        ctx.save_for_backward(v, numbers)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        v, numbers = ctx.saved_tensors
        grad_v = torch.empty_like(v)
        by_inverse = launcher(ctx.backend).normalize_backward(
            _rows(grad), _rows(v), numbers, _rows(grad_v)
        )
        return None, grad_v, _by_curvature(ctx, 2, by_inverse, numbers[0])


class _Lift(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, space: Tensor, c: lorentz.Curvature) -> Tensor:
        inverse_c = _inverse(c, space)
        out = space.new_empty(*space.shape[:-1], space.size(-1) + 1)
        launcher(backend).lift_forward(_rows(space), inverse_c.reshape(1), _rows(out))
        ctx.backend = backend
        ctx.save_for_backward(out, inverse_c)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        out, inverse_c = ctx.saved_tensors
        grad_space = out.new_empty(*out.shape[:-1], out.size(-1) - 1)
        by_inverse = launcher(ctx.backend).lift_backward(_rows(grad), _rows(out), _rows(grad_space))
        return None, grad_space, _by_curvature(ctx, 2, by_inverse, inverse_c)


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: Backend, x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        scale = x.new_tensor([1 / (1 - p)])
        threshold = min(round(p * 2**32), 2**32 - 1)
        launcher(backend).dropout_forward(_rows(x), seed, threshold, scale, relu, _rows(out))
        ctx.backend, ctx.relu, ctx.seed, ctx.threshold = backend, relu, seed, threshold
        ctx.save_for_backward(scale, *([out] if relu else []))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        scale, *out = ctx.saved_tensors
        grad_x = torch.empty_like(grad, memory_format=torch.contiguous_format)
        kernels = launcher(ctx.backend)
        if ctx.relu:
            kernels.relu_dropout_backward(_rows(grad), _rows(out[0]), scale, _rows(grad_x))
        else:
            kernels.dropout_backward(_rows(grad), ctx.seed, ctx.threshold, scale, _rows(grad_x))
        return None, grad_x, None, None, None


def _rows(x: Tensor) -> Tensor:
    """``[..., d]`` -> ``[N, d]``, contiguous."""
    return x.reshape(-1, x.size(-1)).contiguous()


def _inverse(c: lorentz.Curvature, like: Tensor) -> Tensor:
    if isinstance(c, Tensor):
        return (1 / c.detach()).to(like.dtype)
    return like.new_tensor(1 / c)


def _by_curvature(ctx: Any, place: int, by_inverse: Tensor, inverse_c: Tensor) -> Tensor | None:
    """Gradient of ``c`` from that of ``1/c``, where it is asked for."""
    return -by_inverse * inverse_c.square() if ctx.needs_input_grad[place] else None
