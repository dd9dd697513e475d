"""The numba kernels on tensors."""

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import Curvature
from hyptrans.kernels.cpu import dropout, loss, rows
from hyptrans.kernels.cpu.jobs import blocks, run
from hyptrans.kernels.operands import LossOperands, Numbers, PointOperands


def points_forward(operands: PointOperands, out: Tensor) -> None:
    """Points into ``out`` ``[..., P, H, d]``."""
    z, residual, log_scale, factor, numbers = operands
    matrices = (z, residual, log_scale, factor, out)
    run(rows.points_forward, _blocks(z), matrices, numbers, (z.size(-2),))


def points_backward(
    grads: tuple[Tensor, ...], operands: PointOperands, grad_z: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient into ``grad_z``; those of the log scales ``[P]`` and of the factor ``[]``."""
    z, residual, log_scale, factor, numbers = operands
    grads = tuple(grad.contiguous() for grad in grads)
    partial = z.new_empty(len(grads), _blocks(grads[0]), 2)
    matrices = (grad_z, z, residual, log_scale, factor, partial, *grads)
    run(rows.points_backward, partial[..., 0].numel(), matrices, numbers, (z.size(-2),))
    sums = partial.sum(1)
    return sums[:, 0], sums[0, 1]


def normalize_forward(v: Tensor, c: Curvature, out: Tensor) -> None:
    """Points into ``out``."""
    run(rows.normalize_forward, _blocks(v), (v, out), _by(c, v))


def normalize_backward(grad: Tensor, v: Tensor, c: Curvature, grad_v: Tensor) -> Tensor:
    """The gradient into ``grad_v``; that of 1/c."""
    partial = v.new_empty(_blocks(v), 1)
    run(rows.normalize_backward, len(partial), (grad, v, grad_v, partial), _by(c, v))
    return partial.sum()


def lift_forward(space: Tensor, c: Curvature, out: Tensor) -> None:
    """Points into ``out``."""
    run(rows.lift_forward, _blocks(out), (out, space), _by(c, space))


def lift_backward(grad: Tensor, out: Tensor, grad_space: Tensor) -> Tensor:
    """The gradient into ``grad_space``; that of 1/c."""
    partial = out.new_empty(_blocks(out), 1)
    run(rows.lift_backward, len(partial), (grad, out, grad_space, partial))
    return partial.sum()


def centroids(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, c: Curvature, out: Tensor
) -> None:
    """Points into ``out`` ``[B, T, H, d]``."""
    query, keys, values = (
        t if t.stride(-1) == 1 else t.contiguous() for t in (query, keys, values)
    )
    matrices = (query, keys, values, places.contiguous(), out)
    strides = (*query.stride()[:3], *keys.stride()[:2], *values.stride()[:2])
    sizes = (out.size(1), out.size(2))
    work = places.numel() * out.size(1) * out.size(2) * (keys.size(-1) + values.size(-1))
    run(
        rows.centroids,
        len(out),
        matrices,
        _by(c, query),
        (*sizes, *strides),
        strided=True,
        work=work,
    )


def dropout_forward(
    x: Tensor, seed: int, threshold: int, scale: float, relu: bool, out: Tensor
) -> None:
    """What is kept into ``out``."""
    run(dropout.dropout_forward, _blocks(x), (x, out), (scale,), (seed, threshold, relu))


def dropout_backward(grad: Tensor, seed: int, threshold: int, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    run(dropout.dropout_backward, _blocks(grad), (grad, grad_x), (scale,), (seed, threshold))


def relu_dropout_backward(grad: Tensor, out: Tensor, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    run(dropout.relu_dropout_backward, _blocks(grad), (grad, out, grad_x), (scale,))


def _blocks(x: Tensor) -> int:
    return blocks(x.numel() // x.size(-1))


def _by(c: Curvature, like: Tensor) -> Numbers:
    """``1/c`` and the unit of rounding."""
    return 1 / float(c), torch.finfo(like.dtype).eps


def cross_entropy(operands: LossOperands, losses: Tensor) -> None:
    """Losses into ``losses`` ``[N, 2]``."""
    logits, targets, *shares, gradient = operands
    blocks = -(-len(logits) // loss.ROWS)
    matrices = (logits, targets.view(-1, 1), losses)
    run(loss.cross_entropy, blocks, matrices, shares, (gradient,))
