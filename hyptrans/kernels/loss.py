"""Label-smoothed cross entropy with logits that are products, computed a few rows at a time.

The logits of a batch are never all in memory: logits of some rows are made, and at once turned
into their losses and gradients, which take their place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hyptrans.geometry.precision import HALF, at_least_float32, full_precision
from hyptrans.kernels import cuda
from hyptrans.kernels.cpu import exp, indices, largest_of, matrix, read, run
from hyptrans.kernels.operator import (
    Case,
    Draw,
    Kept,
    Kernels,
    Made,
    Operator,
    refuse_second_derivative,
)
from hyptrans.kernels.products import add_product_, times_transposed

if TYPE_CHECKING:
    import triton.language as tl  # type: ignore

TILE_NUMBERS = 1 << 21
"""Logits in memory at a time on the CPU: 8 MiB of float32, about what a core's cache holds."""
CUDA_TILE_NUMBERS = 1 << 26
"""The most on CUDA, where each tile costs about nine launches."""
BYTES_OF_A_LOGIT = 8
"""In half precision, in float32, and its gradient in half precision; or in float64."""
GRADIENT_SCALE = 2.0**15
"""Makes gradients of logits, at most 1, numbers of float16: 1e-9 keeps three digits."""
LEAST_ROWS = 64
"""Products of fewer rows are slow."""
ROWS = 8
"""Rows that are one thread's at a time on the CPU: a row of logits is long."""


def label_smoothed_cross_entropy(
    features: Tensor, table: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Losses of logits ``features @ table.T`` summed over rows: smoothed, and of the targets alone.

    The smoothed loss takes ``1 - smoothing`` of the probability for the target and spreads the rest
    evenly over all other tokens. Only the smoothed loss has a gradient, made in the same pass.

    Shapes: features ``[N, K]``, table ``[V, K]``, targets ``[N]`` (below V) -> ``[]``, ``[]``.
    Range: float32 or better, of logits in the precision of the factors, as fairseq's own; sums of
    gradients are in float32 too, of gradients of logits with three digits down to 1e-9.

    Raises:
        ValueError: ``smoothing`` is not between 0 and 1, or on the CPU a target is not below V.
        RuntimeError: such a target on CUDA, at a later call: the host does not wait for the check.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"label smoothing must be at least 0 and below 1, got {smoothing}")
    targets = _in_range(targets, len(table))
    dtype = torch.promote_types(features.dtype, table.dtype)
    wanted = torch.is_grad_enabled() and (features.requires_grad or table.requires_grad)
    with full_precision(features):
        loss, nll_loss = _CrossEntropy.apply(
            features.to(dtype), table.to(dtype), targets, smoothing, wanted
        )
    return loss, nll_loss


def _in_range(targets: Tensor, types: int) -> Tensor:
    if targets.device.type != "cpu":  # fails on the device where a target is out of range
        return torch.arange(types, device=targets.device).index_select(0, targets)
    least, most = torch.stack(targets.aminmax()).tolist() if targets.numel() else (0, 0)
    if least < 0 or most >= types:
        wrong = least if least < 0 else most
        raise ValueError(f"targets must be from 0 to {types - 1}, got {wrong}")
    return targets


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, table: Tensor, targets: Tensor, smoothing: float, wanted: bool
    ) -> tuple[Tensor, Tensor]:
        dtype = at_least_float32(features[:0]).dtype
        sums = features.new_zeros(2, dtype=dtype)
        by_features = torch.empty_like(features, dtype=dtype) if wanted else None
        # transposed, so that a product copies the narrow rows
        by_table = torch.zeros_like(table.t(), dtype=dtype) if wanted else None
        halves = features.dtype in HALF and _by_tensor_cores(features)
        columns = table.t() if halves else at_least_float32(table).t()
        of_all = smoothing / max(1, len(table) - 1)
        of_target = 1 - smoothing - of_all
        tile = rows_of_tile(features.device, len(table))
        for start in range(0, len(features), tile):
            rows = features[start : start + tile]
            logits = at_least_float32(times_transposed(rows, table))
            rows_targets = targets[start : start + tile].contiguous()
            losses, _ = CROSS_ENTROPY(logits, rows_targets, of_target, of_all, wanted)
            sums += losses.sum(0)
            if by_features is None or by_table is None:
                continue
            if halves:
                gradient = logits.mul_(GRADIENT_SCALE).to(rows.dtype)
                of_rows = _product_of_halves(gradient, table).div_(GRADIENT_SCALE)
                by_table.add_(_product_of_halves(rows.t(), gradient), alpha=1 / GRADIENT_SCALE)
            else:
                of_rows = times_transposed(logits, columns)
                add_product_(by_table, at_least_float32(rows).t(), logits.t())
            by_features[start : start + tile] = of_rows
        ctx.dtype = features.dtype
        ctx.save_for_backward(*([] if by_table is None else [by_features, by_table.t()]))
        # no views of one tensor: fairseq multiplies a loss in place where a process has no batch
        loss, nll_loss = (part.clone() for part in sums)
        ctx.mark_non_differentiable(nll_loss)
        return loss, nll_loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("take label_smoothed_cross_entropy without tiles")
        # what was summed up in float32 is scaled before it is rounded to half precision
        by_features, by_table = ((kept * grad).to(ctx.dtype) for kept in ctx.saved_tensors)
        return by_features, by_table, None, None, None


def rows_of_tile(device: torch.device, types: int) -> int:
    """How many rows of so many logits are made at a time; on CUDA in a quarter of free memory."""
    numbers = TILE_NUMBERS
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        numbers = min(CUDA_TILE_NUMBERS, free // (4 * BYTES_OF_A_LOGIT))
    return max(LEAST_ROWS, numbers // types)


def _by_tensor_cores(like: Tensor) -> bool:
    """Whether torch multiplies matrices like this one, of half precision, to one of float32."""
    return like.is_cuda and _make_float32(like.dtype, like.device)


@functools.cache
def _make_float32(dtype: torch.dtype, device: torch.device) -> bool:
    one = torch.ones(8, 8, dtype=dtype, device=device)
    try:
        return bool((_product_of_halves(one, one) == 8).all())
    except (RuntimeError, TypeError):  # of a GPU or a version of torch without such products
        return False


def _product_of_halves(a: Tensor, b: Tensor) -> Tensor:
    return torch.mm(a, b, out_dtype=torch.float32)


def plain_losses_(
    logits: Tensor, targets: Tensor, of_target: float, of_all: float, gradient: bool
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the target's of each row, and logits or gradients in their place.

    Shapes: logits ``[N, V]``, contiguous, of float32 or float64; targets ``[N]`` -> ``[N, 2]``.
    ``of_all``: the share of the probability of every token; ``of_target``: the target's further
    share.
    """
    size = logits.size(-1)
    normalizer = logits.logsumexp(-1)
    at_target = targets.unsqueeze(-1)
    nll = normalizer - logits.gather(-1, at_target).squeeze(-1)
    losses = torch.stack(
        [of_target * nll + of_all * (size * normalizer - logits.sum(-1)), nll], dim=-1
    )
    if gradient:
        logits.sub_(normalizer.unsqueeze(-1)).exp_().sub_(of_all)
        logits.scatter_add_(-1, at_target, logits.new_full(at_target.shape, -of_target))
    return losses, logits


def cross_entropy(block: int, pointer: Any) -> None:
    """Losses of rows of logits ``[N, V]``, over which their gradients are written if wanted.

    Matrices: logits, targets ``[N, 1]`` of int64, losses ``[N, 2]`` (smoothed; of the target
    alone). Scalars: the target's share of the probability, that of every token. Integers: whether
    gradients are wanted.
    """
    job = read(pointer)
    logits, targets, losses = matrix(job, 0), indices(job, 1), matrix(job, 2)
    of_target, of_all = job.scalars[0], job.scalars[1]
    wanted = job.integers[0] != 0
    rows, size = logits.shape
    zero, one = logits.dtype.type(0), logits.dtype.type(1)
    for n in range(block * ROWS, min((block + 1) * ROWS, rows)):
        target = targets[n, 0]
        chosen, largest, plain = logits[n, target], largest_of(logits[n]), zero
        for j in range(size):
            plain += logits[n, j]
        total = zero
        if wanted:
            for j in range(size):
                power = exp(logits[n, j] - largest)
                logits[n, j] = power
                total += power
            scale = one / total
            for j in range(size):
                logits[n, j] = logits[n, j] * scale - of_all
            logits[n, target] -= of_target
        else:
            for j in range(size):
                total += exp(logits[n, j] - largest)
        normalizer = largest + math.log(total)
        losses[n, 0] = of_target * (normalizer - chosen) + of_all * (size * normalizer - plain)
        losses[n, 1] = normalizer - chosen


def _losses_(
    logits: Tensor, targets: Tensor, of_target: float, of_all: float, gradient: bool
) -> tuple[Made, Kept]:
    losses = logits.new_empty(len(logits), 2)
    matrices = (logits, targets.view(-1, 1), losses)
    run(cross_entropy, -(-len(logits) // ROWS), matrices, (of_target, of_all), (gradient,))
    return (losses, logits), ()


@cuda.kernel("size")
def cross_entropy_cuda(
    logits: tl.tensor,
    targets: tl.tensor,
    numbers: tl.tensor,
    losses: tl.tensor,
    size: tl.tensor,
    GRADIENT: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """A row of ``logits`` ``[N, size]`` a program, ``WIDTH`` columns at a time.

    ``targets`` ``[N]``, ``losses`` ``[N, 2]``; ``numbers``: the target's share of the probability,
    that of every token.
    """
    row = tl.program_id(0).to(tl.int64)
    start = logits + row * size
    column = tl.arange(0, WIDTH)
    of_target, of_all = tl.load(numbers), tl.load(numbers + 1)
    # largest and total of each lane: they are joined once, at the end
    largest = tl.full([WIDTH], float("-inf"), of_all.dtype)
    total = tl.zeros([WIDTH], of_all.dtype)
    plain = tl.zeros([WIDTH], of_all.dtype)
    for first in range(0, size, WIDTH):
        inside = first + column < size
        value = tl.load(start + first + column, mask=inside, other=float("-inf"))
        higher = tl.maximum(largest, value)
        # a lane that has seen nothing yet has no finite number to subtract
        known = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(largest - known) + tl.exp(value - known)
        plain += tl.where(inside, value, 0.0)
        largest = higher
    most = tl.max(largest, axis=0)
    normalizer = most + tl.log(tl.sum(total * tl.exp(largest - most), axis=0))
    target = tl.load(targets + row)
    chosen = tl.load(start + target)
    loss = of_target * (normalizer - chosen)
    loss += of_all * (size * normalizer - tl.sum(plain, axis=0))
    tl.store(losses + 2 * row, loss)
    tl.store(losses + 2 * row + 1, normalizer - chosen)
    if GRADIENT:
        for first in range(0, size, WIDTH):
            inside = first + column < size
            value = tl.load(start + first + column, mask=inside, other=0.0)
            gradient = tl.exp(value - normalizer) - of_all
            gradient -= tl.where(first + column == target, of_target, 0.0)
            tl.store(start + first + column, gradient, mask=inside)


def _losses_cuda_(
    logits: Tensor, targets: Tensor, of_target: float, of_all: float, gradient: bool
) -> tuple[Made, Kept]:
    losses, size = logits.new_empty(len(logits), 2), logits.size(-1)
    shares, (width, _) = (
        cuda.device_constants((of_target, of_all), logits),
        cuda.tile(size, cuda.TILE),
    )
    args = (logits, targets, shares, losses, size)
    cuda.launch(cross_entropy_cuda, (len(logits),), logits, *args, GRADIENT=gradient, WIDTH=width)
    return (losses, logits), ()


def _cases(draw: Draw) -> Iterator[Case]:
    logits = draw.rows(5 * draw.width).flatten(0, -2)
    targets = torch.arange(len(logits), device=logits.device) % logits.size(-1)
    yield "cross entropy", (logits, targets, 0.9, 0.002, False)
    yield "cross entropy with gradients", (logits, targets, 0.9, 0.002, True)


CROSS_ENTROPY = Operator(
    "cross entropy",
    plain_losses_,
    cases=_cases,
    cpu=Kernels(_losses_),
    cuda=Kernels(_losses_cuda_),
)
