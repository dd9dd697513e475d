"""Attention weights from the distances between points, with masks: one pass over the products."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyptrans.geometry import klein, poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.functions import applied
from hyptrans.kernels.operands import WeightOperands


def distance_weights(
    products: Tensor,
    scale: Tensor,
    *,
    squared: bool,
    allowed: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Softmax over keys of ``scale d`` or, ``squared``, ``scale d^2`` with ``d = arcosh(-p)``.

    Shapes: products ``p`` ``[B, H, T, S]`` of points of curvature -1, scale ``[H]``; allowed
    ``[B, 1, 1, S]``, or what else broadcasts to the products, is true at keys that may be looked
    at; with ``is_causal`` no query sees a later key, and each sees its own -> ``[B, H, T, S]``.
    Source: HAN eq. 2, HVT eq. 22.
    """
    products, scale = at_least_float32(products), at_least_float32(scale).to(products.dtype)
    batch, heads, queries, keys = products.shape
    by_keys = allowed is None or allowed.shape == (batch, 1, 1, keys)
    own = not is_causal or queries == keys
    by_head = scale.shape == (heads,)
    # there is no kernel for CUDA yet, nor for a mask of queries and keys
    if by_keys and own and by_head and chosen(products, "weights") == "numba":
        weights: Tensor = applied(_Weights, products, scale, squared, allowed, is_causal)
        return weights
    return plain_weights(products, scale, squared=squared, allowed=allowed, is_causal=is_causal)


def plain_weights(
    products: Tensor,
    scale: Tensor,
    *,
    squared: bool,
    allowed: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """:func:`distance_weights` in plain torch."""
    apart = poincare.squared_arcosh(products) if squared else klein.Arcosh.apply(-products)
    return masked_softmax(apart * scale[:, None, None], allowed=allowed, is_causal=is_causal)


def masked_softmax(scores: Tensor, *, allowed: Tensor | None, is_causal: bool) -> Tensor:
    """Softmax over the keys that may be looked at; masks as in :func:`distance_weights`.

    Shapes: scores ``[B, H, T, S]``, which are written over -> ``[B, H, T, S]``.
    """
    if is_causal:
        allowed = causal_mask(scores.size(-1), allowed, scores.device)
    if allowed is not None:
        scores = scores.masked_fill_(~allowed, -torch.inf)
    return scores.softmax(-1)


def causal_mask(length: int, allowed: Tensor | None, device: torch.device) -> Tensor:
    """True where a query may look: at itself, and at earlier positions that are ``allowed``.

    Shapes: allowed ``[B, 1, 1, T]`` or None -> ``[B, 1, T, T]`` or ``[T, T]``.
    """
    past = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    if allowed is None:
        return past
    # a padding position that sees nothing would have no weights to normalize, hence NaN
    return (allowed & past) | torch.eye(length, dtype=torch.bool, device=device)


def one_mask(key: Tensor, allowed: Tensor | None, is_causal: bool) -> tuple[Tensor | None, bool]:
    """``attn_mask`` and ``is_causal`` for torch's fused attention, which takes one of them only.

    Shapes: key ``[B, H, T, d]``, allowed ``[B, 1, 1, T]``.
    """
    if is_causal and allowed is not None:
        return causal_mask(key.size(2), allowed, key.device), False
    return allowed, is_causal


class _Weights(torch.autograd.Function):
    """:func:`distance_weights` by the kernel."""

    @staticmethod
    def forward(
        ctx: Any,
        products: Tensor,
        scale: Tensor,
        squared: bool,
        allowed: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        _, heads, length, _ = products.shape
        if allowed is not None:
            allowed = allowed.to(products.dtype).contiguous()
        # where d^2 is smooth an excess below one unit of rounding is noise; d has a kink there
        least = torch.finfo(products.dtype).eps if squared else 0.0
        integers = (length, heads, int(is_causal), int(squared))
        operands = WeightOperands(
            products.contiguous(), scale.contiguous(), allowed, (least,), integers
        )
        out = torch.empty_like(operands.products)
        launcher("numba").weights_forward(operands, out)
        if ctx is not None:
            ctx.save_for_backward(out, operands.products, operands.scale)
            ctx.others = operands[2:]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        made, products, scale = ctx.saved_tensors
        operands = WeightOperands(products, scale, *ctx.others)
        out = torch.empty_like(products)
        by_scale = launcher("numba").weights_backward(grad.contiguous(), made, operands, out)
        return out, by_scale, None, None, None
