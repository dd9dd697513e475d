"""The kernels of :mod:`~hyptrans.kernels.cuda.rows` on tensors, launched where these lie.

Nothing here waits for the device, but for the first use of a number of the host, which is copied
there once. Tested in Triton's interpreter, and compiled for capabilities 8.0 and 9.0; not yet run
on a GPU (``recipes/benchmark/gpu.sh`` does that).
"""

import functools
from typing import Any

import torch
import triton  # type: ignore
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.cuda import loss, rows
from hyptrans.kernels.operands import LossOperands, Numbers, PointOperands

TILE = 2048
"""Numbers that a program holds of each of its tensors; more only where a row is longer."""
COLUMNS = 1024
"""Columns of a dropout's tile at most, so that rows of attention weights may be of any length."""


def points_forward(operands: PointOperands, out: Tensor) -> None:
    """Points into ``out`` ``[..., P, H, d]``."""
    z, count = operands.z, operands.z.numel() // operands.z.size(-1)
    args = (*_tensors(operands), out, count)
    _launch(rows.points_forward, count, z, args, _projections(operands))


def points_backward(
    grads: tuple[Tensor, ...], operands: PointOperands, grad_z: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient into ``grad_z``; those of the log scales ``[P]`` and of the factor ``[]``."""
    z, count = operands.z, operands.z.numel() // operands.z.size(-1) // len(grads)
    partial = z.new_empty(len(grads), _programs(count, z.size(-1)), 2)
    for p, grad in enumerate(grads):
        given = _tensors(operands if p == 0 else operands._replace(factor=None))
        args = (grad.contiguous(), *given, grad_z, partial[p], count, p)
        _launch(rows.points_backward, count, z, args, _projections(operands))
    # where no factor was given its column holds nothing, and nobody asks for its sum
    return partial[..., 0].sum(1), partial[0, :, 1].sum()


def _tensors(operands: PointOperands) -> tuple[Tensor | None, ...]:
    z, residual, log_scale, factor, numbers = operands
    return z, residual, _given(numbers[:3], z), log_scale, factor


def _projections(operands: PointOperands) -> dict[str, Any]:
    *_, projections, heads, _ = operands.z.shape
    return {
        "RESIDUAL_TIME": operands.residual_time,
        "PROJECTIONS": projections,
        "HEADS": heads,
    }


def normalize_forward(v: Tensor, c: CurvatureLike, out: Tensor) -> None:
    """Points into ``out``."""
    count = v.numel() // v.size(-1)
    _launch(rows.normalize_forward, count, v, (v, _curvature(c, v), out, count), _floor(v))


def normalize_backward(grad: Tensor, v: Tensor, c: CurvatureLike, grad_v: Tensor) -> Tensor:
    """The gradient into ``grad_v``; that of 1/c."""
    count = v.numel() // v.size(-1)
    partial = v.new_empty(_programs(count, v.size(-1)))
    args = (grad, v, _curvature(c, v), grad_v, partial, count)
    _launch(rows.normalize_backward, count, v, args, _floor(v))
    return partial.sum()


def _floor(v: Tensor) -> dict[str, Any]:
    return {"FLOOR": torch.finfo(v.dtype).eps}


def lift_forward(space: Tensor, c: CurvatureLike, out: Tensor) -> None:
    """Points into ``out``."""
    count = out.numel() // out.size(-1)
    _launch(rows.lift_forward, count, out, (space, _curvature(c, space), out, count))


def lift_backward(grad: Tensor, out: Tensor, grad_space: Tensor) -> Tensor:
    """The gradient into ``grad_space``; that of 1/c."""
    count = out.numel() // out.size(-1)
    partial = out.new_empty(_programs(count, out.size(-1)))
    _launch(rows.lift_backward, count, out, (grad, out, grad_space, partial, count))
    return partial.sum()


def dropout_forward(
    x: Tensor, seed: int, threshold: int, scale: float, relu: bool, out: Tensor
) -> None:
    """What is kept into ``out``."""
    _dropout(x, None, out, scale, seed=seed, threshold=threshold, relu=relu)


def dropout_backward(grad: Tensor, seed: int, threshold: int, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    _dropout(grad, None, grad_x, scale, seed=seed, threshold=threshold)


def relu_dropout_backward(grad: Tensor, out: Tensor, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    _dropout(grad, out, grad_x, scale)


def _dropout(
    x: Tensor,
    made: Tensor | None,
    out: Tensor,
    scale: float,
    *,
    seed: int = 0,
    threshold: int = 0,
    relu: bool = False,
) -> None:
    columns = x.size(-1)
    count, width = x.numel() // columns, min(triton.next_power_of_2(columns), COLUMNS)
    height = TILE // width
    bits = [_signed(number) for number in (seed & 0xFFFFFFFF, seed >> 32, threshold)]
    # the scale's dtype is that of the arithmetic
    args = (x, made, _given((scale,), at_least_float32(x[:0])), out, count, columns, *bits)
    with torch.cuda.device_of(x):
        rows.dropout[(triton.cdiv(count, height), triton.cdiv(columns, width))](
            *args, RELU=relu, WIDTH=width, ROWS=height
        )


def _signed(bits: int) -> int:
    """The same 32 bits as a signed number: every seed makes arguments of one type."""
    return bits - 2**32 if bits >= 2**31 else bits


def _launch(
    kernel: Any,
    count: int,
    like: Tensor,
    args: tuple[Any, ...],
    options: dict[str, Any] | None = None,
) -> None:
    """Run a kernel on ``count`` rows as long as those of ``like``."""
    width, height = _tile(like.size(-1))
    # eight warps keep a row of 8192 in 32 registers a thread for each tensor
    warps = 4 if width <= 2 * TILE else 8 if width <= 4 * TILE else 16
    with torch.cuda.device_of(like):
        kernel[(triton.cdiv(count, height),)](
            *args, **(options or {}), D=like.size(-1), WIDTH=width, ROWS=height, num_warps=warps
        )


def _tile(d: int) -> tuple[int, int]:
    """Columns and rows of a program's tile."""
    width = triton.next_power_of_2(d)
    return width, max(1, TILE // width)


def _programs(count: int, d: int) -> int:
    return -(-count // _tile(d)[1])


def _curvature(c: CurvatureLike, like: Tensor) -> Tensor:
    """The curvature on the device, where a learned one is already."""
    return c.to(like.device) if isinstance(c, Tensor) else _given((c,), like)


def _given(numbers: Numbers, like: Tensor) -> Tensor:
    return _copied(numbers, like.dtype, like.device)


@functools.lru_cache(maxsize=1024)
def _copied(numbers: Numbers, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)


def cross_entropy(operands: LossOperands, losses: Tensor) -> None:
    """Losses into ``losses`` ``[N, 2]``."""
    logits, targets, of_target, of_all, gradient = operands
    size, shares = logits.size(-1), _given((of_target, of_all), logits)
    width = min(triton.next_power_of_2(size), TILE)
    with torch.cuda.device_of(logits):
        loss.cross_entropy[(len(logits),)](
            logits, targets, shares, losses, size, GRADIENT=gradient, WIDTH=width
        )
