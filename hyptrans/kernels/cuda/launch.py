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

from hyptrans.geometry.lorentz import Curvature
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.cuda import rows

Numbers = tuple[float, ...]

TILE = 2048
"""Numbers that a program holds of each of its tensors; more only where a row is longer."""
COLUMNS = 1024
"""Columns of a dropout's tile at most, so that rows of attention weights may be of any length."""


def points_forward(
    z: Tensor,
    residual: Tensor | None,
    log_scale: Tensor,
    factor: Tensor | None,
    numbers: Numbers,
    out: Tensor,
) -> None:
    """Points into ``out``; ``z`` and ``out`` ``[N, P, H, d]``."""
    count = z.numel() // z.size(-1)
    made_from = _made_from(z, residual, log_scale, numbers)
    _launch(rows.points_forward, count, z, (*made_from, factor, out, count), _maps(z, numbers))


def points_backward(
    grads: tuple[Tensor, ...],
    z: Tensor,
    residual: Tensor | None,
    log_scale: Tensor,
    factor: Tensor | None,
    numbers: Numbers,
    grad_z: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradient into ``grad_z``; those of the log scales ``[P]`` and of the factor ``[]``."""
    count = z.numel() // z.size(-1) // len(grads)
    made_from, maps = _made_from(z, residual, log_scale, numbers), _maps(z, numbers)
    partial = z.new_empty(len(grads), _programs(count, z.size(-1)), 2)
    for p, grad in enumerate(grads):
        after = (factor if p == 0 else None, grad_z, partial[p], count, p)
        _launch(rows.points_backward, count, z, (grad.contiguous(), *made_from, *after), maps)
    # where no factor was given its column holds nothing, and nobody asks for its sum
    return partial[..., 0].sum(1), partial[0, :, 1].sum()


def _made_from(
    z: Tensor, residual: Tensor | None, log_scale: Tensor, numbers: Numbers
) -> tuple[Tensor | None, ...]:
    added = None if residual is None else residual.contiguous()
    return z, added, _given(numbers[:3], z), log_scale.contiguous()


def _maps(z: Tensor, numbers: Numbers) -> dict[str, Any]:
    return {"RESIDUAL_TIME": bool(numbers[3]), "MAPS": z.size(-3), "HEADS": z.size(-2)}


def normalize_forward(v: Tensor, c: Curvature, out: Tensor) -> None:
    """Points into ``out``."""
    count = v.numel() // v.size(-1)
    _launch(rows.normalize_forward, count, v, (v, _curvature(c, v), out, count), _floor(v))


def normalize_backward(grad: Tensor, v: Tensor, c: Curvature, grad_v: Tensor) -> Tensor:
    """The gradient into ``grad_v``; that of 1/c."""
    count = v.numel() // v.size(-1)
    partial = v.new_empty(_programs(count, v.size(-1)))
    args = (grad, v, _curvature(c, v), grad_v, partial, count)
    _launch(rows.normalize_backward, count, v, args, _floor(v))
    return partial.sum()


def _floor(v: Tensor) -> dict[str, Any]:
    return {"FLOOR": torch.finfo(v.dtype).eps}


def lift_forward(space: Tensor, c: Curvature, out: Tensor) -> None:
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


def _curvature(c: Curvature, like: Tensor) -> Tensor:
    """The curvature on the device, where a learned one is already."""
    return c.to(like.device) if isinstance(c, Tensor) else _given((c,), like)


def _given(numbers: Numbers, like: Tensor) -> Tensor:
    return _copied(numbers, like.dtype, like.device)


@functools.lru_cache(maxsize=1024)
def _copied(numbers: Numbers, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)
