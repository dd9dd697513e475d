"""The kernels of :mod:`~hyptrans.kernels.rows_numba` on tensors, shared out among threads."""

import functools

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry.lorentz import Curvature
from hyptrans.kernels import rows_numba as rows
from hyptrans.kernels.threads import share_out

Numbers = tuple[float, ...]


def points_forward(
    z: Tensor,
    residual: Tensor | None,
    log_scale: Tensor,
    factor: Tensor | None,
    numbers: Numbers,
    out: Tensor,
) -> None:
    """Points into ``out``; ``z`` and ``out`` ``[N, P, H, d]``."""
    given = _rows(z)
    others = _point_arrays(z, residual, log_scale, numbers)
    blocks = rows.blocks(len(given))
    after = (z.size(-2), _one(factor, z.dtype), _rows(out))
    share_out(rows.points_forward, blocks, given.size, given, *others, *after)


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
    made_from = (_rows(z), *_point_arrays(z, residual, log_scale, numbers))
    heads, target = z.size(-2), _rows(grad_z)
    blocks = rows.blocks(len(target) // len(grads))
    partial = z.new_zeros(len(grads), blocks, 2)
    for p, grad in enumerate(grads):
        given = _rows(grad.contiguous())
        after = (p, heads, _one(factor if p == 0 else None, z.dtype), target, partial[p].numpy())
        share_out(rows.points_backward, blocks, given.size, given, *made_from, *after)
    sums = partial.sum(1)
    return sums[:, 0], sums[0, 1]


def _point_arrays(
    z: Tensor, residual: Tensor | None, log_scale: Tensor, numbers: Numbers
) -> tuple[rows.Array, ...]:
    added = _empty(z.dtype, z.size(-1)) if residual is None else _rows(residual.contiguous())
    return added, _array(numbers, z.dtype), np.exp(log_scale.numpy())


@functools.lru_cache(maxsize=1024)
def _array(numbers: Numbers, dtype: torch.dtype) -> rows.Array:
    return torch.tensor(numbers, dtype=dtype).numpy()


@functools.cache
def _empty(dtype: torch.dtype, *width: int) -> rows.Array:
    return torch.empty(0, *width, dtype=dtype).numpy()


def _one(number: Tensor | None, dtype: torch.dtype) -> rows.Array:
    """An array of one number, or of none."""
    return _empty(dtype) if number is None else number.view(1).numpy()


def normalize_forward(v: Tensor, c: Curvature, out: Tensor) -> None:
    """Points into ``out``."""
    given = _rows(v)
    share_out(
        rows.normalize_forward, rows.blocks(len(given)), given.size, given, _by(c, v), _rows(out)
    )


def normalize_backward(grad: Tensor, v: Tensor, c: Curvature, grad_v: Tensor) -> Tensor:
    """The gradient into ``grad_v``; that of 1/c."""
    given = _rows(grad)
    blocks = rows.blocks(len(given))
    partial = v.new_zeros(blocks, 1)
    others = (_rows(v), _by(c, v), _rows(grad_v), partial.numpy())
    share_out(rows.normalize_backward, blocks, given.size, given, *others)
    return partial.sum()


def lift_forward(space: Tensor, c: Curvature, out: Tensor) -> None:
    """Points into ``out``."""
    made = _rows(out)
    given = (_rows(space), _by(c, space), made)
    share_out(rows.lift_forward, rows.blocks(len(made)), made.size, *given)


def lift_backward(grad: Tensor, out: Tensor, grad_space: Tensor) -> Tensor:
    """The gradient into ``grad_space``; that of 1/c."""
    given = _rows(grad)
    blocks = rows.blocks(len(given))
    partial = out.new_zeros(blocks, 1)
    others = (_rows(out), _rows(grad_space), partial.numpy())
    share_out(rows.lift_backward, blocks, given.size, given, *others)
    return partial.sum()


def dropout_forward(
    x: Tensor, seed: int, threshold: int, scale: float, relu: bool, out: Tensor
) -> None:
    """What is kept into ``out``."""
    given = _rows(x)
    others = (seed, threshold, _array((scale,), x.dtype), relu, _rows(out))
    share_out(rows.dropout_forward, rows.blocks(len(given)), given.size, given, *others)


def dropout_backward(grad: Tensor, seed: int, threshold: int, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    given = _rows(grad)
    others = (seed, threshold, _array((scale,), grad.dtype), _rows(grad_x))
    share_out(rows.dropout_backward, rows.blocks(len(given)), given.size, given, *others)


def relu_dropout_backward(grad: Tensor, out: Tensor, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    given = _rows(grad)
    others = (_rows(out), _array((scale,), grad.dtype), _rows(grad_x))
    share_out(rows.relu_dropout_backward, rows.blocks(len(given)), given.size, given, *others)


def _rows(x: Tensor) -> rows.Array:
    return x.view(-1, x.size(-1)).numpy()


def _by(c: Curvature, like: Tensor) -> rows.Array:
    """``1/c`` and the unit of rounding."""
    if isinstance(c, Tensor):
        c = float(c)
    return _array((1 / c, torch.finfo(like.dtype).eps), like.dtype)
