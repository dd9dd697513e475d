"""Triton kernels of :mod:`hyptrans.kernels.lorentz`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.kernels import cuda
from hyptrans.kernels.cuda import lanes, space_product, time_of, with_time

if TYPE_CHECKING:
    import triton.language as tl  # type: ignore


@cuda.kernel()
def _sum(
    z: tl.tensor,
    residual: tl.tensor,
    at: tl.tensor,
    column: tl.tensor,
    inside: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
) -> Any:
    """Return a linear map's rows plus their residual, and the time coordinates of these sums."""
    value = tl.load(z + at, mask=inside, other=0.0)
    if residual is not None:
        added = tl.load(residual + at, mask=inside, other=0.0).to(value.dtype)
        if not RESIDUAL_TIME:
            added = tl.where(column == 0, 0.0, added)
        value += added
    return value, time_of(value, column)


@cuda.kernel("rows")
def linear_forward(
    z: tl.tensor,
    residual: tl.tensor,
    scalars: tl.tensor,
    log_scale: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
    PROJECTIONS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Map ``z`` ``[N PROJECTIONS HEADS, D]`` to points; ``residual`` ``[N, D]`` if both are 1.

    ``scalars``: least time, 1/c, epsilon; ``log_scale`` ``[PROJECTIONS]``.
    """
    row, column, at, _, inside = lanes(rows, D, WIDTH, ROWS)
    value, time = _sum(z, residual, at, column, inside, RESIDUAL_TIME)
    least, inverse_c, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    squared = space_product(value, value, column)
    scale = tl.exp(tl.load(log_scale + row // HEADS % PROJECTIONS).to(value.dtype))
    reached = scale * tl.sigmoid(time) + least
    ratio = (reached * reached - inverse_c) / (squared + epsilon)
    made = tl.sqrt(squared * ratio + inverse_c)
    made = with_time(made, value * tl.sqrt(ratio)[:, None], column)
    tl.store(out + at, made, mask=inside)


@cuda.kernel("rows")
def linear_backward(
    grad: tl.tensor,
    z: tl.tensor,
    residual: tl.tensor,
    scalars: tl.tensor,
    log_scale: tl.tensor,
    grad_z: tl.tensor,
    by_scale: tl.tensor,
    rows: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
    PROJECTIONS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Compute :func:`linear_forward`'s gradient; ``by_scale`` ``[rows]``: that of log scales."""
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    value, time = _sum(z, residual, at, column, inside, RESIDUAL_TIME)
    given = tl.load(grad + at, mask=inside, other=0.0)
    squared = space_product(value, value, column)
    along = space_product(value, given, column)
    least, inverse_c, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    scale = tl.exp(tl.load(log_scale + row // HEADS % PROJECTIONS).to(value.dtype))
    sigmoid = tl.sigmoid(time)
    reached = scale * sigmoid + least
    inverse = 1 / (squared + epsilon)
    ratio = (reached * reached - inverse_c) * inverse
    root = tl.sqrt(ratio)
    by_made = time_of(given, column) / tl.sqrt(squared * ratio + inverse_c)
    by_ratio = (along / root + by_made * squared) * 0.5
    by_squared = by_made * ratio - by_ratio * 2 * ratio * inverse
    by_reached = by_ratio * 2 * reached * inverse * scale * sigmoid
    tl.store(by_scale + row, by_reached, mask=exists)
    by_space = given * root[:, None] + by_squared[:, None] * value
    tl.store(grad_z + at, with_time(by_reached * (1 - sigmoid), by_space, column), mask=inside)


def from_linear(
    z: Tensor, residual: Tensor | None, log_scale: Tensor, out: Tensor, scalars: tuple[float, ...]
) -> None:
    """Launch :func:`linear_forward`."""
    args = (z, residual, cuda.device_constants(scalars[:3], z), log_scale, out)
    cuda.launch_rows(linear_forward, z, *args, **_sizes(z, scalars))


def from_linear_gradient(
    grad: Tensor,
    z: Tensor,
    residual: Tensor | None,
    log_scale: Tensor,
    grad_z: Tensor,
    scalars: tuple[float, ...],
) -> Tensor:
    """Launch :func:`linear_backward`; return the gradients of the log scales, ``[N, P]``."""
    on_device, by_scale = cuda.device_constants(scalars[:3], z), z.new_empty(z.shape[:-1])
    args = (grad, z, residual, on_device, log_scale, grad_z, by_scale)
    cuda.launch_rows(linear_backward, z, *args, **_sizes(z, scalars))
    return by_scale.sum(-1).view(-1, log_scale.numel())


def _sizes(z: Tensor, scalars: tuple[float, ...]) -> dict[str, Any]:
    return {"RESIDUAL_TIME": bool(scalars[3]), "PROJECTIONS": z.size(-3), "HEADS": z.size(-2)}


@cuda.kernel()
def _slopes(
    v: tl.tensor,
    c: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    exists: tl.tensor,
    inside: tl.tensor,
    D: tl.constexpr,
    LEAST: tl.constexpr,
) -> Any:
    """Return ``a = v_s / v_t``, ``1 / v_t``, ``|a|^2``, ``1 - |a|^2``, whether floored, 1/c."""
    # a time of 1 keeps lanes without a row from dividing zero by zero
    inverse = 1 / tl.load(v + row * D, mask=exists, other=1.0)
    slope = tl.load(v + at, mask=inside, other=0.0) * inverse[:, None]
    squared = space_product(slope, slope, column)
    gap = 1 - squared
    # written so that NaN stays NaN
    floored, gap = gap <= LEAST, tl.where(gap < LEAST, LEAST, gap)
    return slope, inverse, squared, gap, floored, 1 / tl.load(c).to(slope.dtype)


@cuda.kernel("rows")
def normalize_forward(
    v: tl.tensor,
    c: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    LEAST: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Scale rows ``[N, D]`` onto the hyperboloid; ``LEAST``: floor of ``1 - |v_s / v_t|^2``."""
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    slope, _, squared, gap, _, inverse_c = _slopes(v, c, row, column, at, exists, inside, D, LEAST)
    scale = tl.sqrt(inverse_c / gap)
    made = tl.sqrt(squared * scale * scale + inverse_c)
    tl.store(out + at, with_time(made, slope * scale[:, None], column), mask=inside)


@cuda.kernel("rows")
def normalize_backward(
    grad: tl.tensor,
    v: tl.tensor,
    c: tl.tensor,
    grad_v: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    LEAST: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Compute the gradient of :func:`normalize_forward`; ``partial`` ``[programs]``: that of c."""
    row, column, at, exists, inside = lanes(rows, D, WIDTH, ROWS)
    slope, inverse, squared, gap, floored, inverse_c = _slopes(
        v, c, row, column, at, exists, inside, D, LEAST
    )
    given = tl.load(grad + at, mask=inside, other=0.0)
    scale = tl.sqrt(inverse_c / gap)
    # the space part's own gradient and that through the time, which follows from it
    by_time = time_of(given, column) / tl.sqrt(squared * scale * scale + inverse_c)
    along = scale * (space_product(slope, given, column) + by_time * scale * squared)
    by_inverse_c = tl.where(exists, (along / inverse_c + by_time) * 0.5, 0.0)
    tl.store(partial + tl.program_id(0), -tl.sum(by_inverse_c, axis=0) * inverse_c * inverse_c)
    along = tl.where(floored, along, along / gap)
    share = by_time * scale * scale + tl.where(floored, 0.0, along)
    by_space = (scale[:, None] * given + share[:, None] * slope) * inverse[:, None]
    tl.store(grad_v + at, with_time(-along * inverse, by_space, column), mask=inside)


def normalize(v: Tensor, c: CurvatureLike, out: Tensor) -> None:
    """Launch :func:`normalize_forward`."""
    args = (v, cuda.curvature(c, v), out)
    cuda.launch_rows(normalize_forward, v, *args, LEAST=torch.finfo(v.dtype).eps)


def normalize_gradient(grad: Tensor, v: Tensor, c: CurvatureLike, grad_v: Tensor) -> Tensor:
    """Launch :func:`normalize_backward`; return parts whose sum is the gradient of c."""
    partial = v.new_empty(cuda.programs(v))
    args = (grad, v, cuda.curvature(c, v), grad_v, partial)
    cuda.launch_rows(normalize_backward, v, *args, LEAST=torch.finfo(v.dtype).eps)
    return partial
