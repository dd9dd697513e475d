"""Label-smoothed cross entropy with logits that are products, computed a few rows at a time.

All logits of a batch are never in memory together: those of some rows are made, and at once turned
into their losses and gradients, which take their place.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry.precision import at_least_float32, without_autocast
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.operands import LossOperands
from hyptrans.kernels.products import times_transposed

TILE_NUMBERS = 1 << 21
"""Logits in memory at a time: 8 MiB of float32, about what a core's cache holds."""
LEAST_ROWS = 64
"""Products of fewer rows are slow."""


def label_smoothed_cross_entropy(
    features: Tensor, table: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Losses of logits ``features @ table.T`` summed over rows: smoothed, and of the targets alone.

    The smoothed loss takes ``1 - smoothing`` of the probability for the target and spreads the rest
    evenly over all other tokens. It alone has a gradient, which is computed with it.

    Shapes: features ``[N, K]``, table ``[V, K]``, targets ``[N]`` (below V) -> ``[]``, ``[]``.
    Range: float32 or better, of logits in the precision of the factors, as fairseq's own; sums of
    gradients are in float32 too.

    Raises:
        ValueError: ``smoothing`` is not between 0 and 1, or a target is not below V.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"label smoothing must be at least 0 and below 1, got {smoothing}")
    if targets.numel():
        least, most = (int(bound) for bound in targets.aminmax())
        if least < 0 or most >= len(table):
            wrong = least if least < 0 else most
            raise ValueError(f"targets must be from 0 to {len(table) - 1}, got {wrong}")
    dtype = torch.promote_types(features.dtype, table.dtype)
    wanted = torch.is_grad_enabled() and (features.requires_grad or table.requires_grad)
    with without_autocast(features):
        loss, nll_loss = _CrossEntropy.apply(
            features.to(dtype), table.to(dtype), targets, smoothing, wanted
        )
    return loss, nll_loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, table: Tensor, targets: Tensor, smoothing: float, wanted: bool
    ) -> tuple[Tensor, Tensor]:
        dtype = at_least_float32(features[:0]).dtype
        sums = features.new_zeros(2, dtype=dtype)
        by_features = torch.empty_like(features, dtype=dtype) if wanted else None
        # transposed, so that it is the narrow rows that a product copies
        by_table = torch.zeros_like(table.t(), dtype=dtype) if wanted else None
        tile = max(LEAST_ROWS, TILE_NUMBERS // len(table))
        for start in range(0, len(features), tile):
            rows = features[start : start + tile]
            logits = at_least_float32(times_transposed(rows, table))
            losses = smoothed_losses_(logits, targets[start : start + tile], smoothing, wanted)
            sums += losses.sum(0)
            if by_features is not None and by_table is not None:
                gradient = logits.to(rows.dtype)
                by_features[start : start + tile] = times_transposed(gradient, table.t())
                by_table += times_transposed(rows.t(), gradient.t())
        ctx.dtype = features.dtype
        ctx.save_for_backward(*([] if by_table is None else [by_features, by_table.t()]))
        # no views of one tensor: fairseq multiplies a loss in place where a process has no batch
        loss, nll_loss = (part.clone() for part in sums)
        ctx.mark_non_differentiable(nll_loss)
        return loss, nll_loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        # what was summed up in float32 is scaled before it is rounded to half precision
        by_features, by_table = ((kept * grad).to(ctx.dtype) for kept in ctx.saved_tensors)
        return by_features, by_table, None, None, None


def smoothed_losses_(logits: Tensor, targets: Tensor, smoothing: float, gradient: bool) -> Tensor:
    """Both losses of each row of logits; their gradients take the place of the logits if wanted.

    Shapes: logits ``[N, V]``, contiguous, of float32 or float64; targets ``[N]`` -> ``[N, 2]``.
    """
    size = logits.size(-1)
    of_all = smoothing / max(1, size - 1)
    of_target = 1 - smoothing - of_all
    operands = LossOperands(logits, targets.contiguous(), of_target, of_all, gradient)
    if (backend := chosen(logits, "loss")) != "eager":
        losses = logits.new_empty(len(logits), 2)
        launcher(backend).cross_entropy(operands, losses)
        return losses
    return plain_losses_(operands)


def plain_losses_(operands: LossOperands) -> Tensor:
    """:func:`smoothed_losses_` in plain torch."""
    logits, targets, of_target, of_all, gradient = operands
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
    return losses
