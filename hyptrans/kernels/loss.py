"""Label-smoothed cross entropy of logits that are matrix products, a few rows at a time.

A batch's logits are never all in memory: the loss computes some rows of logits and at once turns
them into losses and gradients, which replace the logits.
"""

import functools
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry.precision import HALF, at_least_float32, full_precision
from hyptrans.kernels.products import add_product_, times_transposed

TILE_NUMBERS = 1 << 21
"""Logits in memory at once on the CPU: 8 MiB of float32, about what a core's cache holds."""
CUDA_TILE_NUMBERS = 1 << 26
"""Most logits in memory at once on CUDA, where each tile costs about fifteen launches."""
BYTES_OF_A_LOGIT = 8
"""A logit in half precision and float32 and its half-precision gradient; or a float64 logit."""
GRADIENT_SCALE = 2.0**15
"""Scales gradients of logits, at most 1, for float16: 1e-9 keeps three digits."""
LEAST_ROWS = 64
"""Products of fewer rows are slow."""


def label_smoothed_cross_entropy(
    features: Tensor, table: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the smoothed and the plain loss of logits ``features @ table.T``, summed over rows.

    The smoothed loss gives the target ``1 - smoothing`` of the probability and spreads the rest
    evenly over all other tokens. Only the smoothed loss has a gradient, from the same pass.

    Shapes: features ``[N, K]``, table ``[V, K]``, targets ``[N]`` (below V) -> ``[]``, ``[]``.
    Range: losses in float32 or better from logits in the factors' precision, as in fairseq; sums of
    gradients in float32 too, from gradients of logits with three digits down to 1e-9.

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
    if targets.device.type != "cpu":  # the device itself fails if a target is out of range
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
        # transposed so that a product copies the narrow rows
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
            losses = losses_(logits, rows_targets, of_target, of_all, gradient=wanted)
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
        # not views of one tensor: fairseq multiplies a loss in place if a process has no batch
        loss, nll_loss = (part.clone() for part in sums)
        ctx.mark_non_differentiable(nll_loss)
        return loss, nll_loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "create_graph=True asks for a second derivative, which the loss in tiles does not "
                "have: take label_smoothed_cross_entropy without tiles"
            )
        # scale the float32 sums before rounding them to half precision
        by_features, by_table = ((kept * grad).to(ctx.dtype) for kept in ctx.saved_tensors)
        return by_features, by_table, None, None, None


def rows_of_tile(device: torch.device, types: int) -> int:
    """Return how many rows of ``types`` logits to compute at once; CUDA: in 1/4 of free memory."""
    numbers = TILE_NUMBERS
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        numbers = min(CUDA_TILE_NUMBERS, free // (4 * BYTES_OF_A_LOGIT))
    return max(LEAST_ROWS, numbers // types)


def _by_tensor_cores(like: Tensor) -> bool:
    """Return whether torch multiplies half-precision matrices like this one into float32."""
    return like.is_cuda and _make_float32(like.dtype, like.device)


@functools.cache
def _make_float32(dtype: torch.dtype, device: torch.device) -> bool:
    one = torch.ones(8, 8, dtype=dtype, device=device)
    try:
        return bool((_product_of_halves(one, one) == 8).all())
    except (RuntimeError, TypeError):  # this GPU or version of torch has no such products
        return False


def _product_of_halves(a: Tensor, b: Tensor) -> Tensor:
    return torch.mm(a, b, out_dtype=torch.float32)


def losses_(
    logits: Tensor, targets: Tensor, of_target: float, of_all: float, *, gradient: bool
) -> Tensor:
    """Return each row's smoothed and plain loss; with ``gradient``, gradients replace the logits.

    Shapes: logits ``[N, V]``, contiguous, float32 or float64; targets ``[N]`` -> ``[N, 2]``.
    ``of_all``: every token's share of the probability; ``of_target``: the target's additional
    share.
    """
    at_target = targets.unsqueeze(-1)
    largest, total = logits.amax(-1, keepdim=True), logits.sum(-1, keepdim=True)
    chosen = logits.gather(-1, at_target)
    # one exponential serves the losses and their gradients
    powers = logits.sub_(largest).exp_() if gradient else (logits - largest).exp()
    sums = powers.sum(-1, keepdim=True)
    normalizer = largest + sums.log()
    nll = normalizer - chosen
    smoothed = of_target * nll + of_all * (logits.size(-1) * normalizer - total)
    if gradient:
        powers.mul_(sums.reciprocal()).sub_(of_all)
        powers.scatter_add_(-1, at_target, powers.new_full(at_target.shape, -of_target))
    return torch.cat([smoothed, nll], dim=-1)
