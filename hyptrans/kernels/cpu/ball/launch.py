"""The kernels of the Poincare ball on tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hyptrans.kernels.cpu.ball import heads as of_heads
from hyptrans.kernels.cpu.ball import residual, tangents
from hyptrans.kernels.cpu.jobs import blocks_of, run
from hyptrans.kernels.operands import Heads, Numbers


def add_forward(u: Tensor, v: Tensor, relu: bool, numbers: Numbers, out: Tensor) -> None:
    """Sums into ``out``, after ReLU where asked for."""
    run(tangents.add_forward, blocks_of(u), (u, v, out), numbers, (relu,))


def add_backward(
    grad: Tensor,
    u: Tensor,
    v: Tensor,
    made: Tensor | None,
    numbers: Numbers,
    grad_v: Tensor,
    grad_u: Tensor,
) -> None:
    """The gradients into ``grad_v`` and ``grad_u``; ``made`` is what came out of ReLU."""
    kernel = tangents.add_backward if made is None else tangents.relu_add_backward
    each = v.numel() == u.numel()
    by_v = grad_v if each else u.new_empty(blocks_of(u), v.numel())
    run(kernel, blocks_of(u), (grad, u, v, grad_u, by_v, made), numbers)
    if not each:
        torch.sum(by_v, 0, out=grad_v.view(-1))


def radial_forward(u: Tensor, inverse: bool, numbers: Numbers, out: Tensor) -> None:
    """What comes of the rows into ``out``."""
    run(tangents.radial_forward, blocks_of(u), (u, out), numbers, (inverse,))


def radial_backward(
    grad: Tensor, u: Tensor, inverse: bool, numbers: Numbers, grad_u: Tensor
) -> None:
    """The gradient into ``grad_u``."""
    run(tangents.radial_backward, blocks_of(u), (grad, u, grad_u), numbers, (inverse,))


def lift_tangent_forward(u: Tensor, heads: Heads, numbers: Numbers, out: Tensor) -> None:
    """Points into ``out`` ``[P, B, H, T, d + 1]``."""
    run(of_heads.lift_forward, blocks_of(out), (out, u), numbers, heads)


def lift_tangent_backward(
    grads: tuple[Tensor, ...], u: Tensor, heads: Heads, numbers: Numbers, grad_u: Tensor
) -> None:
    """The gradient into ``grad_u``."""
    each, grads = blocks_of(grads[0]), tuple(grad.contiguous() for grad in grads)
    integers = (*heads, each)
    run(of_heads.lift_backward, each * len(grads), (grad_u, u, *grads), numbers, integers)


def centroid_forward(total: Tensor, heads: Heads, numbers: Numbers, out: Tensor) -> None:
    """Tangents into ``out`` ``[B, T, H, d]``."""
    run(of_heads.centroid_forward, blocks_of(out), (out, total), numbers, heads)


def centroid_backward(
    grad: Tensor, total: Tensor, heads: Heads, numbers: Numbers, grad_total: Tensor
) -> None:
    """The gradient into ``grad_total``."""
    run(of_heads.centroid_backward, blocks_of(total), (grad, total, grad_total), numbers, heads)


def norm_residual_forward(
    operands: Sequence[Tensor], numbers: Numbers, kept: tuple[int, int], out: Tensor
) -> None:
    """Points into ``out``."""
    run(residual.forward, blocks_of(out), (*operands, out), numbers, kept)


def norm_residual_backward(
    grad: Tensor,
    operands: Sequence[Tensor],
    numbers: Numbers,
    kept: tuple[int, int],
    grad_x: Tensor,
    grad_z: Tensor,
) -> Tensor:
    """The gradients into ``grad_x`` and ``grad_z``; those of bias, gain, shift and beta."""
    partial = grad_z.new_empty(blocks_of(grad_z), 3 * grad_z.size(-1) + 1)
    matrices = (grad, *operands, grad_x, grad_z, partial)
    run(residual.backward, len(partial), matrices, numbers, kept)
    return partial.sum(0)
