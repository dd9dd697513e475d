"""The kernels of :mod:`~hyptrans.kernels.rows_numba` on tensors, shared out among threads."""

from torch import Tensor

from hyptrans.kernels import rows_numba as rows
from hyptrans.kernels.threads import share_out


def points_forward(
    z: Tensor, residual: Tensor, numbers: Tensor, scale: Tensor, factor: Tensor, out: Tensor
) -> None:
    """Points into ``out``; ``z`` and ``out`` ``[N, P, H, d]``."""
    before = [_rows(z), *(t.numpy() for t in (residual, numbers, scale))]
    after = [factor.numpy(), _rows(out)]
    blocks = rows.blocks(len(before[0]))
    share_out(rows.points_forward, blocks, z.numel(), *before, z.size(2), *after)


def points_backward(
    grads: tuple[Tensor, ...],
    z: Tensor,
    residual: Tensor,
    numbers: Tensor,
    scale: Tensor,
    factor: Tensor,
    grad_z: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradient into ``grad_z``; those of the log scales ``[P]`` and of the factor ``[]``."""
    before = [_rows(z), *(t.numpy() for t in (residual, numbers, scale))]
    heads, blocks = z.size(2), rows.blocks(z.size(0) * z.size(2))
    partial = z.new_zeros(z.size(1), blocks, 2)
    for p, grad in enumerate(grads):
        after = [(factor if p == 0 else factor[:0]).numpy(), _rows(grad_z), partial[p].numpy()]
        given = _rows(grad.contiguous())
        share_out(rows.points_backward, blocks, given.size, given, *before, p, heads, *after)
    sums = partial.sum(1)
    return sums[:, 0], sums[0, 1]


def normalize_forward(v: Tensor, numbers: Tensor, out: Tensor) -> None:
    """Points into ``out``."""
    arrays = [t.numpy() for t in (v, numbers, out)]
    share_out(rows.normalize_forward, rows.blocks(v.size(0)), v.numel(), *arrays)


def normalize_backward(grad: Tensor, v: Tensor, numbers: Tensor, grad_v: Tensor) -> Tensor:
    """The gradient into ``grad_v``; that of 1/c."""
    blocks = rows.blocks(v.size(0))
    partial = v.new_zeros(blocks, 1)
    arrays = [t.numpy() for t in (grad, v, numbers, grad_v, partial)]
    share_out(rows.normalize_backward, blocks, v.numel(), *arrays)
    return partial.sum()


def lift_forward(space: Tensor, inverse_c: Tensor, out: Tensor) -> None:
    """Points into ``out``."""
    arrays = [t.numpy() for t in (space, inverse_c, out)]
    share_out(rows.lift_forward, rows.blocks(out.size(0)), out.numel(), *arrays)


def lift_backward(grad: Tensor, out: Tensor, grad_space: Tensor) -> Tensor:
    """The gradient into ``grad_space``; that of 1/c."""
    blocks = rows.blocks(out.size(0))
    partial = out.new_zeros(blocks, 1)
    arrays = [t.numpy() for t in (grad, out, grad_space, partial)]
    share_out(rows.lift_backward, blocks, out.numel(), *arrays)
    return partial.sum()


def dropout_forward(
    x: Tensor, seed: int, threshold: int, scale: Tensor, relu: bool, out: Tensor
) -> None:
    """What is kept into ``out``."""
    given = (x.numpy(), seed, threshold, scale.numpy(), relu, out.numpy())
    share_out(rows.dropout_forward, rows.blocks(x.size(0)), x.numel(), *given)


def dropout_backward(
    grad: Tensor, seed: int, threshold: int, scale: Tensor, grad_x: Tensor
) -> None:
    """The gradient into ``grad_x``."""
    given = (grad.numpy(), seed, threshold, scale.numpy(), grad_x.numpy())
    share_out(rows.dropout_backward, rows.blocks(grad.size(0)), grad.numel(), *given)


def relu_dropout_backward(grad: Tensor, out: Tensor, scale: Tensor, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    arrays = [t.numpy() for t in (grad, out, scale, grad_x)]
    share_out(rows.relu_dropout_backward, rows.blocks(grad.size(0)), grad.numel(), *arrays)


def _rows(x: Tensor) -> rows.Array:
    return x.view(-1, x.size(-1)).numpy()
