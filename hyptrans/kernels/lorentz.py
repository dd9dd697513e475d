"""Points of the hyperboloid, from the results of a linear map and from time-like vectors."""

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import lorentz_cuda
from hyptrans.kernels.backend import BLOCK, FULL, TILE, applied, backend, blocks_of, run
from hyptrans.kernels.cpu import exp, matrix, read


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
            matrices = (z, residual, log_scale, out)
            run(linear_forward, matrices, scalars, (z.size(-2),))
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
            run(linear_backward, matrices, scalars, (z.size(-2),))
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


def linear_forward(block: int, pointer: Any) -> None:
    """Map the results of a linear map to points.

    Matrices: z ``[N P H, d]``, residual ``[N, d]`` (if P = H = 1) or none, log scales ``[1, P]``,
    points. Scalars: least time, 1/c, epsilon, and the weight of the residual's time (0 or 1).
    Integers: H.
    """
    job = read(pointer)
    z, residual, log_scale, out = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    least, inverse_c, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    heads, projections = job.integers[0], log_scale.shape[1]
    rows, d = z.shape
    zero, one = z.dtype.type(0), z.dtype.type(1)
    scale = np.exp(log_scale[0])
    times, squares, scales = np.empty((3, TILE), z.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n = start + k
            squared, time = zero, z[n, 0]
            if residual.shape[0]:
                time += job.scalars[3] * residual[n, 0]
                for j in range(1, d):
                    value = z[n, j] + residual[n, j]
                    squared += value * value
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
            squares[k], times[k], scales[k] = squared, time, scale[n // heads % projections]
        # roots and quotients of many rows overlap; within one row each waits for the previous one
        for k in range(tile):
            time = scales[k] / (one + exp(-times[k])) + least
            ratio = (time * time - inverse_c) / (squares[k] + epsilon)
            times[k] = math.sqrt(squares[k] * ratio + inverse_c)
            scales[k] = math.sqrt(ratio)
        for k in range(tile):
            n, space_scale = start + k, scales[k]
            if residual.shape[0]:
                for j in range(d):
                    out[n, j] = (z[n, j] + residual[n, j]) * space_scale
            else:
                for j in range(d):
                    out[n, j] = z[n, j] * space_scale
            out[n, 0] = times[k]


def linear_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`linear_forward`.

    Matrices: gradient of the points, z, residual, log scales, gradient of z, ``partial``
    ``[blocks, P]`` (of the log scales). Scalars and integers as for :func:`linear_forward`.
    """
    job = read(pointer)
    grad, z, residual, log_scale = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    grad_z, partial = matrix(job, 4), matrix(job, 5)
    least, inverse_c, epsilon = job.scalars[0], job.scalars[1], job.scalars[2]
    heads, projections = job.integers[0], log_scale.shape[1]
    rows, d = z.shape
    zero, half, one = z.dtype.type(0), z.dtype.type(0.5), z.dtype.type(1)
    scale = np.exp(log_scale[0])
    partial[block] = zero
    squares, alongs, times, scales, by_squares, grad_times = np.empty((6, TILE), z.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n = start + k
            squared, along, time = zero, zero, z[n, 0]
            if residual.shape[0]:
                time += job.scalars[3] * residual[n, 0]
                for j in range(1, d):
                    value = z[n, j] + residual[n, j]
                    squared += value * value
                    along += value * grad[n, j]
            else:
                for j in range(1, d):
                    squared += z[n, j] * z[n, j]
                    along += z[n, j] * grad[n, j]
            squares[k], alongs[k], times[k], grad_times[k] = squared, along, time, grad[n, 0]
            scales[k] = scale[n // heads % projections]
        # without branches and on the tile's numbers alone, this loop becomes vector code
        for k in range(tile):
            squared = squares[k]
            sigmoid = one / (one + exp(-times[k]))
            time = scales[k] * sigmoid + least
            inverse = one / (squared + epsilon)
            ratio = (time * time - inverse_c) * inverse
            root = math.sqrt(ratio)
            by_time = grad_times[k] / math.sqrt(squared * ratio + inverse_c)
            by_ratio = half * (alongs[k] / root + by_time * squared)
            by_squares[k] = by_time * ratio - (by_ratio + by_ratio) * ratio * inverse
            by_time = (by_ratio + by_ratio) * time * inverse * scales[k] * sigmoid
            times[k] = by_time * (one - sigmoid)
            alongs[k] = by_time
            scales[k] = root
        for k in range(tile):
            n, space_scale, by_squared = start + k, scales[k], by_squares[k]
            partial[block, n // heads % projections] += alongs[k]
            if residual.shape[0]:
                for j in range(d):
                    value = z[n, j] + residual[n, j]
                    grad_z[n, j] = grad[n, j] * space_scale + by_squared * value
            else:
                for j in range(d):
                    grad_z[n, j] = grad[n, j] * space_scale + by_squared * z[n, j]
            grad_z[n, 0] = times[k]


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
            run(normalize_forward, (v, out), (1 / float(c), torch.finfo(v.dtype).eps))
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
            run(normalize_backward, matrices, scalars)
        else:
            partial = lorentz_cuda.normalize_gradient(grad, v, c, grad_v)
        return grad_v, None if learned is None else partial.sum().view(learned.shape), None


def normalize_forward(block: int, pointer: Any) -> None:
    """Scale rows ``[N, d]`` onto the hyperboloid.

    Matrices: vectors, points. Scalars: 1/c, floor of ``1 - |v_s / v_t|^2``.
    """
    job = read(pointer)
    v, out = matrix(job, 0), matrix(job, 1)
    inverse_c, least = job.scalars[0], job.scalars[1]
    rows, d = v.shape
    zero, one = v.dtype.type(0), v.dtype.type(1)
    squares, scales = np.empty((2, TILE), v.dtype)
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            # the squares of slopes neither underflow nor overflow
            squared, inverse = zero, one / v[start + k, 0]
            for j in range(1, d):
                slope = v[start + k, j] * inverse
                squared += slope * slope
            squares[k], scales[k] = squared, inverse
        for k in range(tile):
            scale = math.sqrt(inverse_c / max(one - squares[k], least))
            squares[k] = math.sqrt(squares[k] * scale * scale + inverse_c)
            scales[k] *= scale
        for k in range(tile):
            scale = scales[k]
            for j in range(d):
                out[start + k, j] = v[start + k, j] * scale
            out[start + k, 0] = squares[k]


def normalize_backward(block: int, pointer: Any) -> None:
    """Compute the gradient of :func:`normalize_forward`.

    Matrices: gradient of the points, vectors, gradient of the vectors, ``partial`` ``[blocks, 1]``
    (of c). Scalars as for :func:`normalize_forward`.
    """
    job = read(pointer)
    grad, v, grad_v, partial = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    inverse_c, least = job.scalars[0], job.scalars[1]
    rows, d = v.shape
    zero, half, one = v.dtype.type(0), v.dtype.type(0.5), v.dtype.type(1)
    squares, alongs, inverses, grad_times, scales = np.empty((5, TILE), v.dtype)
    total = zero
    for start in range(block * BLOCK, min((block + 1) * BLOCK, rows), TILE):
        tile = min(TILE, min((block + 1) * BLOCK, rows) - start)
        for k in range(tile):
            n, squared, along = start + k, zero, zero
            inverse = one / v[n, 0]
            # stored for use below: free to reorder, a compiler would square the inverse there
            for j in range(1, d):
                grad_v[n, j] = v[n, j] * inverse
            for j in range(1, d):
                squared += grad_v[n, j] * grad_v[n, j]
                along += grad_v[n, j] * grad[n, j]
            squares[k], alongs[k], inverses[k], grad_times[k] = squared, along, inverse, grad[n, 0]
        by_inverse_c = zero
        for k in range(tile):
            squared, gap = squares[k], one - squares[k]
            inside = gap > least
            gap = gap if inside else least
            scale = math.sqrt(inverse_c / gap)
            # the space part's own gradient and that through the time, which follows from it
            by_time = grad_times[k] / math.sqrt(squared * scale * scale + inverse_c)
            along = scale * (alongs[k] + by_time * scale * squared)
            by_inverse_c += half * (along / inverse_c + by_time)
            along /= gap if inside else one
            scales[k] = scale * inverses[k]
            share = by_time * scale * scale + (along if inside else zero)
            squares[k], alongs[k] = share * inverses[k], along * inverses[k]
        total += by_inverse_c
        for k in range(tile):
            n, scale, share = start + k, scales[k], squares[k]
            for j in range(1, d):
                grad_v[n, j] = scale * grad[n, j] + share * grad_v[n, j]
            grad_v[n, 0] = -alongs[k]
    partial[block, 0] = -total * inverse_c * inverse_c
