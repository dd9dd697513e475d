"""The numba kernels on tensors."""

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.kernels.cpu import dropout, hypformer, klein, loss, rows, weights
from hyptrans.kernels.cpu.ball.launch import (  # noqa: F401 - they are called as functions of this module
    add_backward,
    add_forward,
    centroid_backward,
    centroid_forward,
    lift_tangent_backward,
    lift_tangent_forward,
    norm_residual_backward,
    norm_residual_forward,
    radial_backward,
    radial_forward,
)
from hyptrans.kernels.cpu.jobs import Kernel, blocks_of, run
from hyptrans.kernels.operands import (
    Heads,
    LossOperands,
    Numbers,
    PointOperands,
    StepOperands,
    WeightOperands,
)


def points_forward(operands: PointOperands, out: Tensor) -> None:
    """Points into ``out`` ``[..., P, H, d]``."""
    z, residual, log_scale, factor, numbers = operands
    matrices = (z, residual, log_scale, factor, out)
    run(rows.points_forward, blocks_of(z), matrices, numbers, (z.size(-2),))


def points_backward(
    grads: tuple[Tensor, ...], operands: PointOperands, grad_z: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient into ``grad_z``; those of the log scales ``[P]`` and of the factor ``[]``."""
    z, residual, log_scale, factor, numbers = operands
    grads = tuple(grad.contiguous() for grad in grads)
    partial = z.new_empty(len(grads), blocks_of(grads[0]), 2)
    matrices = (grad_z, z, residual, log_scale, factor, partial, *grads)
    run(rows.points_backward, partial[..., 0].numel(), matrices, numbers, (z.size(-2),))
    sums = partial.sum(1)
    return sums[:, 0], sums[0, 1]


def normalize_forward(v: Tensor, c: CurvatureLike, out: Tensor) -> None:
    """Points into ``out``."""
    run(rows.normalize_forward, blocks_of(v), (v, out), _by(c, v))


def normalize_backward(grad: Tensor, v: Tensor, c: CurvatureLike, grad_v: Tensor) -> Tensor:
    """The gradient into ``grad_v``; that of 1/c."""
    partial = v.new_empty(blocks_of(v), 1)
    run(rows.normalize_backward, len(partial), (grad, v, grad_v, partial), _by(c, v))
    return partial.sum()


def lift_forward(space: Tensor, c: CurvatureLike, out: Tensor) -> None:
    """Points into ``out``."""
    run(rows.lift_forward, blocks_of(out), (out, space), _by(c, space))


def lift_backward(grad: Tensor, out: Tensor, grad_space: Tensor) -> Tensor:
    """The gradient into ``grad_space``; that of 1/c."""
    partial = out.new_empty(blocks_of(out), 1)
    run(rows.lift_backward, len(partial), (grad, out, grad_space, partial))
    return partial.sum()


def centroids(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, c: CurvatureLike, out: Tensor
) -> None:
    """Points into ``out`` ``[B, T, H, d]``."""
    _attend(weights.centroids, (query, keys, values, places, out), _by(c, query))


def midpoints(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    places: Tensor,
    scale: Tensor,
    numbers: Numbers,
    out: Tensor,
) -> None:
    """Midpoints into ``out`` ``[B, T, H, d - 1]``."""
    _attend(weights.midpoints, (query, keys, values, places, out, scale), numbers)


def _attend(kernel: Kernel, matrices: tuple[Tensor, ...], numbers: Numbers) -> None:
    """Run attention of a few queries on query, keys, values, places, output and what else it reads.

    Shapes: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places ``[B, S]``,
    output ``[B, T, H, e]``.
    """
    rows = (t if t.stride(-1) == 1 else t.contiguous() for t in matrices[:3])
    query, keys, values = rows
    places, out = matrices[3].contiguous(), matrices[4]
    sizes = (out.size(1), out.size(2))
    strides = (*query.stride()[:3], *keys.stride()[:2], *values.stride()[:2])
    run(
        kernel,
        len(out),
        (query, keys, values, places, out, *matrices[5:]),
        numbers,
        (*sizes, *strides),
        strided=True,
        work=places.numel() * out.size(1) * out.size(2) * (keys.size(-1) + values.size(-1)),
    )


def dropout_forward(
    x: Tensor, seed: int, threshold: int, scale: float, relu: bool, out: Tensor
) -> None:
    """What is kept into ``out``."""
    run(dropout.dropout_forward, blocks_of(x), (x, out), (scale,), (seed, threshold, relu))


def dropout_backward(grad: Tensor, seed: int, threshold: int, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    run(dropout.dropout_backward, blocks_of(grad), (grad, grad_x), (scale,), (seed, threshold))


def relu_dropout_backward(grad: Tensor, out: Tensor, scale: float, grad_x: Tensor) -> None:
    """The gradient into ``grad_x``."""
    run(dropout.relu_dropout_backward, blocks_of(grad), (grad, out, grad_x), (scale,))


def _by(c: CurvatureLike, like: Tensor) -> Numbers:
    """``1/c`` and the unit of rounding."""
    return 1 / float(c), torch.finfo(like.dtype).eps


def cross_entropy(operands: LossOperands, losses: Tensor) -> None:
    """Losses into ``losses`` ``[N, 2]``."""
    logits, targets, *shares, gradient = operands
    blocks = -(-len(logits) // loss.ROWS)
    matrices = (logits, targets.view(-1, 1), losses)
    run(loss.cross_entropy, blocks, matrices, shares, (gradient,))


def weights_forward(operands: WeightOperands, out: Tensor) -> None:
    """Weights into ``out`` ``[B, H, T, S]``."""
    products, scale, allowed, numbers, integers = operands
    run(weights.forward, blocks_of(products), (products, scale, allowed, out), numbers, integers)


def weights_backward(
    grad: Tensor, made: Tensor, operands: WeightOperands, grad_products: Tensor
) -> Tensor:
    """The gradient into ``grad_products``; that of the scales ``[H]``."""
    products, scale, _, numbers, integers = operands
    partial = scale.new_empty(blocks_of(products), len(scale))
    matrices = (grad, made, products, scale, grad_products, partial)
    run(weights.backward, len(partial), matrices, numbers, integers)
    return partial.sum(0)


def polar_forward(given: Tensor, heads: Heads, numbers: Numbers, out: Tensor) -> None:
    """Points into ``out`` ``[P, B, H, T, d]``."""
    run(klein.polar_forward, blocks_of(out), (out, given), numbers, heads)


def polar_backward(
    grads: tuple[Tensor, ...], given: Tensor, heads: Heads, numbers: Numbers, grad_given: Tensor
) -> None:
    """The gradient into ``grad_given``."""
    each, grads = blocks_of(grads[0]), tuple(grad.contiguous() for grad in grads)
    matrices = (grad_given, given, *grads)
    run(klein.polar_backward, each * len(grads), matrices, numbers, (*heads, each))


def midpoint_forward(total: Tensor, heads: Heads, numbers: Numbers, out: Tensor) -> None:
    """Midpoints into ``out`` ``[B, T, H, d]``."""
    run(klein.midpoint_forward, blocks_of(out), (out, total), numbers, heads)


def midpoint_backward(
    grad: Tensor, total: Tensor, heads: Heads, numbers: Numbers, grad_total: Tensor
) -> None:
    """The gradient into ``grad_total``."""
    run(klein.midpoint_backward, blocks_of(total), (grad, total, grad_total), numbers, heads)


def norm_forward(
    x: Tensor, update: Tensor, gain: Tensor, bias: Tensor, numbers: Numbers, out: Tensor
) -> None:
    """Points into ``out``."""
    run(hypformer.norm_forward, blocks_of(x), (x, update, gain, bias, out), numbers)


def norm_backward(
    operands: tuple[Tensor, ...], numbers: Numbers, grad_x: Tensor, grad_update: Tensor
) -> Tensor:
    """The gradients into ``grad_x`` and ``grad_update``; those of gain, bias, scale and 1/c."""
    partial = grad_x.new_empty(blocks_of(grad_x), 2 * grad_update.size(-1) + 2)
    matrices = (*operands, grad_x, grad_update, partial)
    run(hypformer.norm_backward, len(partial), matrices, numbers)
    return partial.sum(0)


def relu_lift_forward(space: Tensor, inverse_c: float, out: Tensor) -> None:
    """Points into ``out``."""
    run(hypformer.relu_lift_forward, blocks_of(out), (out, space), (inverse_c,))


def relu_lift_backward(grad: Tensor, out: Tensor, grad_space: Tensor) -> Tensor:
    """The gradient into ``grad_space``; that of 1/c."""
    partial = out.new_empty(blocks_of(out), 1)
    run(hypformer.relu_lift_backward, len(partial), (grad, out, grad_space, partial))
    return partial.sum()


def focus_forward(numbers: Tensor, factors: Tensor, epsilon: float, out: Tensor) -> None:
    """Features into ``out`` ``[B, H, T, d]``."""
    integers = (*out.shape[1:3], *numbers.stride()[:3])
    matrices = (out, numbers, factors)
    run(hypformer.focus_forward, blocks_of(out), matrices, (epsilon,), integers, strided=True)


def focus_backward(
    grad: Tensor, numbers: Tensor, factors: Tensor, epsilon: float, grad_numbers: Tensor
) -> Tensor:
    """The gradient into ``grad_numbers``; that of the factors ``[H, 1, d]``."""
    integers = (*grad.shape[1:3], *numbers.stride()[:3])
    partial = grad.new_empty(blocks_of(grad), factors.numel())
    matrices = (grad, numbers, factors, grad_numbers, partial)
    run(hypformer.focus_backward, len(partial), matrices, (epsilon,), integers, strided=True)
    return partial.sum(0).view_as(factors)


def linear_step(operands: StepOperands, keys_after: Tensor, after: Tensor, out: Tensor) -> None:
    """Outputs into ``out`` ``[B, 1, H, e]``, sums into ``after`` and ``keys_after``."""
    query, key, value, before, keys_before, order, maps, numbers = operands
    matrices = (out, query, key, value, before, keys_before, order, after, keys_after, maps)
    strides = (stride for t in (query, key, value) for stride in t.stride()[:2])
    integers = (query.size(1), *strides)
    run(
        hypformer.linear_step,
        len(out),
        matrices,
        numbers,
        integers,
        strided=True,
        work=2 * after.numel(),
    )


def linear_read(
    query: Tensor,
    sums: Tensor,
    keys: Tensor,
    order: Tensor | None,
    maps: Tensor,
    numbers: Numbers,
    out: Tensor,
) -> None:
    """Outputs into ``out`` ``[B, T, H, e]``."""
    integers = (*out.shape[1:3], *query.stride()[:3])
    matrices = (out, query, sums, keys, order, maps)
    work = out.numel() * query.size(-1)
    run(hypformer.linear_read, len(out), matrices, numbers, integers, strided=True, work=work)
