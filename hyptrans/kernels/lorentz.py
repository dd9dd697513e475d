"""Points of the hyperboloid, from the results of a linear map and from time-like vectors."""

import functools
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import lorentz_cpu, lorentz_cuda
from hyptrans.kernels.backend import FULL, applied, backend, blocks_of, run


def from_linear(
    z: Tensor,
    log_scale: Tensor,
    *,
    c: float,
    residual: Tensor | None = None,
    residual_time: bool = True,
) -> Tensor:
    """Return :func:`hyptrans.geometry.lorentz.from_linear` of several projections and a residual.

    Shapes: z ``[..., P, H, d]``, log_scale ``[P]`` -> ``[..., P, H, d]``. A residual ``[..., d]``
    adds to ``z`` of one projection and one head; with ``residual_time`` its time adds too.
    Source: HyboNet eq. 3 and 7.

    Raises:
        ValueError: log scales and projections differ in number, or a residual has several heads.
    """
    if log_scale.dim() != 1 or log_scale.size(0) != z.size(-3):
        shape = tuple(log_scale.shape)
        raise ValueError(f"{z.size(-3)} projections need as many log scales, got {shape}")
    if residual is not None and z.size(-3) * z.size(-2) != 1:
        shape = tuple(z.shape[-3:-1])
        raise ValueError(f"a residual needs one projection of one head, got {shape}")
    if not z.dtype == log_scale.dtype == (z if residual is None else residual).dtype in FULL:
        dtypes = (x.dtype for x in (z, log_scale, residual) if x is not None)
        dtype = functools.reduce(torch.promote_types, dtypes, torch.float32)
        z, log_scale = z.to(dtype), log_scale.to(dtype)
        residual = None if residual is None else residual.to(dtype)
    chosen = backend(z, triton=True)
    if chosen == "eager":
        if residual is None:
            return lorentz.from_linear(z, log_scale[:, None, None], c=c)
        residual = residual if residual_time else _without_time(residual)
        return lorentz.from_linear(z.flatten(-3) + residual, log_scale, c=c).view(z.shape)
    if residual is not None:
        residual = residual.expand(*z.shape[:-3], z.size(-1))
    return applied(_FromLinear, z, log_scale, residual, (c, residual_time, chosen))


def _without_time(residual: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(residual[..., :1]), residual[..., 1:]], dim=-1)


@functools.cache
def _scalars(dtype: torch.dtype, c: float, residual_time: bool) -> tuple[float, ...]:
    """Return least time, 1/c, a squared norm's epsilon, and the weight of a residual's time."""
    epsilon = lorentz.space_norm_epsilon(dtype)
    return c**-0.5 + lorentz.TIME_MARGIN, 1 / c, epsilon, float(residual_time)


class _FromLinear(torch.autograd.Function):
    """Kernels of :func:`from_linear`."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        log_scale: Tensor,
        residual: Tensor | None,
        options: tuple[float, bool, str],
    ) -> Tensor:
        z, log_scale = z.contiguous(), log_scale.contiguous()
        residual = None if residual is None else residual.contiguous()
        c, residual_time, chosen = options
        scalars, out = _scalars(z.dtype, c, residual_time), torch.empty_like(z)
        if chosen == "numba":
            run(lorentz_cpu.linear_forward, (z, residual, log_scale, out), scalars, (z.size(-2),))
        else:
            lorentz_cuda.from_linear(z, residual, log_scale, out, scalars)
        ctx.save_for_backward(z, log_scale, residual)
        ctx.options = scalars, chosen
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, log_scale, residual = ctx.saved_tensors
        scalars, chosen = ctx.options
        grad, grad_z = grad.contiguous(), torch.empty_like(z)
        if chosen == "numba":
            partial = z.new_empty(blocks_of(z), z.size(-3))
            matrices = (grad, z, residual, log_scale, grad_z, partial)
            run(lorentz_cpu.linear_backward, matrices, scalars, (z.size(-2),))
        else:
            partial = lorentz_cuda.from_linear_gradient(
                grad, z, residual, log_scale, grad_z, scalars
            )
        grad_residual = None
        if residual is not None:
            grad_residual = grad_z.view(residual.shape)
            # a copy, as a hook or gradient clipping may overwrite one of the two gradients
            grad_residual = grad_residual.clone() if scalars[3] else _without_time(grad_residual)
        return grad_z, partial.sum(0), grad_residual, None


def normalize(v: Tensor, *, c: CurvatureLike = 1.0) -> Tensor:
    """Scale time-like vectors onto the hyperboloid: :func:`hyptrans.geometry.lorentz.normalize`.

    Shapes: ``[..., D]`` -> ``[..., D]``.
    """
    v = at_least_float32(v)
    chosen = backend(v, triton=True)
    # kernels take one curvature for all rows
    if chosen == "eager" or (isinstance(c, Tensor) and c.numel() > 1):
        return lorentz.normalize(v, c=c)
    return applied(_Normalize, v, c, chosen)


class _Normalize(torch.autograd.Function):
    """Kernels of :func:`normalize`."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, c: CurvatureLike, chosen: str) -> Tensor:
        v = v.contiguous()
        out = torch.empty_like(v)
        if chosen == "numba":
            run(lorentz_cpu.normalize_forward, (v, out), (1 / float(c), torch.finfo(v.dtype).eps))
        else:
            lorentz_cuda.normalize(v, c, out)
        ctx.save_for_backward(v, c if isinstance(c, Tensor) else None)
        ctx.options = c if not isinstance(c, Tensor) else None, chosen
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (v, learned), (fixed, chosen) = ctx.saved_tensors, ctx.options
        c = fixed if learned is None else learned.detach()
        grad, grad_v = grad.contiguous(), torch.empty_like(v)
        if chosen == "numba":
            partial = v.new_empty(blocks_of(v))
            scalars = (1 / float(c), torch.finfo(v.dtype).eps)
            matrices = (grad, v, grad_v, partial.unsqueeze(-1))
            run(lorentz_cpu.normalize_backward, matrices, scalars)
        else:
            partial = lorentz_cuda.normalize_gradient(grad, v, c, grad_v)
        return grad_v, None if learned is None else partial.sum().view(learned.shape), None
