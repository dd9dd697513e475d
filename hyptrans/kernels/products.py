"""Matrix products by the faster of torch's two libraries, and the loss of logits that are products.

torch multiplies with MKL, which leaves the AVX-512 units of AMD processors idle. oneDNN, which
torch includes for convolutions, uses them: on Zen 5 it makes whole training steps up to 1.6 times
as fast. Zen 4, whose units are half as wide, gains a tenth with wide matrices and loses with narrow
ones. On other processors, under autocast and for small products, torch multiplies as usual.

A batch's logits, a model's last product, are never all in memory: their loss computes some rows of
them and at once turns them into losses and gradients, which replace the logits.
"""

import functools
from typing import Any

import torch
from llvmlite import binding
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry.precision import HALF, at_least_float32, full_precision, matrix_product
from hyptrans.kernels.backend import backend

LEAST_WEIGHT = 1 << 17 if binding.get_host_cpu_name() == "znver4" else 0
"""Smaller matrices of weights are multiplied by MKL."""
LEAST_PRODUCTS = 3 << 19
"""With fewer multiplications, oneDNN's overhead takes longer than the product itself."""
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


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x W^T + b``, like :func:`torch.nn.functional.linear`.

    Shapes: x ``[..., in]``, weight ``[out, in]``, bias ``[out]`` -> ``[..., out]``.
    """
    if not _in_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return _onednn(x, weight, bias)
    return _Linear.apply(x, weight, bias)


def exact_linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x W^T`` in float32 or better, even under autocast and where torch may use TF32.

    Shapes: x ``[..., in]``, weight ``[out, in]`` -> ``[..., out]``.
    """
    with full_precision(x):
        return linear(x, weight) if _in_onednn(x, weight) else matrix_product(x, weight.t())


def scaled_linear(x: Tensor, weight: Tensor, bias: Tensor, scale: Tensor | float) -> Tensor:
    """Return ``scale (x W^T + b)``; a scale that is a 0-dimensional tensor may have a gradient.

    Shapes: x ``[..., in]``, weight ``[out, in]``, bias ``[out]`` -> ``[..., out]``.
    """
    if isinstance(scale, Tensor) or _in_onednn(x, weight):
        # scaling the weights is cheaper than scaling the results of all positions
        return linear(x, weight * scale, bias * scale)
    flat = x.reshape(-1, x.size(-1))
    rows = torch.addmm(bias, flat, weight.t(), beta=scale, alpha=scale)
    return rows.view(*x.shape[:-1], len(bias))


def _add_product_(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add ``a b^T`` in place, outside autograd; this copies ``a`` if it is not contiguous."""
    if _in_onednn(a, b):
        total += _onednn(a, b)
    else:
        total.addmm_(a, b.t())


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        # a second derivative needs operators that have a gradient
        product = F.linear if torch.is_grad_enabled() else _onednn
        rows, grad_rows = x.reshape(-1, x.size(-1)), grad.reshape(-1, weight.size(0))
        grad_weight = None
        if of_weight and grad_rows.size(1) < rows.size(1):
            grad_weight = product(grad_rows.t(), rows.t())
        elif of_weight:
            # this way the copy is of the narrower factor
            grad_weight = product(rows.t(), grad_rows.t()).t()
        grad_x = product(grad_rows, weight.t()).view(x.shape) if of_x else None
        return grad_x, grad_weight, grad_rows.sum(0) if of_bias else None


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # for a part of a wider matrix, oneDNN would take 1,000 times as long
    dense = weight if weight.t().is_contiguous() else weight.contiguous()
    return torch.ops.mkldnn._linear_pointwise(x, dense, bias, "none", [], "")


def _in_onednn(x: Tensor, weight: Tensor) -> bool:
    # while torch compiles, no backend of ours runs: a graph serves every batch and length, so
    # the size of x must not decide anything in it
    return (
        FASTER
        and backend(x) == "numba"
        and weight.numel() >= LEAST_WEIGHT
        and x.dtype == weight.dtype == torch.float32
        and x.numel() * weight.size(0) >= LEAST_PRODUCTS
        and not torch.is_autocast_enabled("cpu")
    )


def _is_right() -> bool:
    """Return whether oneDNN's linear map, not a public operator of torch, still works as before."""
    x, bias = torch.arange(35.0, device="cpu").sin().view(5, 7), torch.ones(5, device="cpu")
    try:
        with torch.inference_mode(False), full_precision(x):
            return torch.allclose(_onednn(x, x, bias), F.linear(x, x, bias), atol=1e-5)
    except (AttributeError, RuntimeError, TypeError):
        return False


FASTER = (
    torch.backends.mkl.is_available()
    and binding.get_host_cpu_name().startswith("znver")
    and binding.get_host_cpu_features().get("avx512f", False)
    and _is_right()
)
"""Whether oneDNN is faster than MKL on this processor, and present and correct."""


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
    features, table = features.to(dtype), table.to(dtype)
    with full_precision(features):
        loss, nll_loss = _CrossEntropy.apply(features, table, targets, smoothing, wanted)
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
            logits = at_least_float32(linear(rows, table))
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
                of_rows = linear(logits, columns)
                _add_product_(by_table, at_least_float32(rows).t(), logits.t())
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
