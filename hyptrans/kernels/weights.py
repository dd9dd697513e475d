"""Attention weights from the distances between points, with masks: one pass over the products."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry import klein, poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.cpu import (
    BLOCK,
    blocks_of,
    exp,
    largest_of,
    log1p,
    matrix,
    read,
    run,
)
from hyptrans.kernels.operator import Case, Draw, Grads, Kept, Kernels, Made, Operator


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
    # the kernel knows no mask of queries and keys
    apply = WEIGHTS if by_keys and own and scale.shape == (heads,) else plain_weights
    weights: Tensor = apply(products, scale, squared, allowed, is_causal)
    return weights


def plain_weights(
    products: Tensor, scale: Tensor, squared: bool, allowed: Tensor | None, is_causal: bool
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
    """``attn_mask`` and ``is_causal`` for torch's fused attention, which takes only one of the two.

    Shapes: key ``[B, H, T, d]``, allowed ``[B, 1, 1, T]``.
    """
    if is_causal and allowed is not None:
        return causal_mask(key.size(2), allowed, key.device), False
    return allowed, is_causal


def weights_forward(block: int, pointer: Any) -> None:
    """Softmax of scaled distances over the keys that a query may look at, others getting 0.

    Matrices: products ``[B H T, S]``, scales ``[1, H]``, allowed ``[B, S]`` or none, weights.
    Scalars: the least excess of a product. Integers: T, H, whether no query sees a later key,
    whether distances are squared.
    """
    job = read(pointer)
    products, scales, allowed, out = matrix(job, 0), matrix(job, 1), matrix(job, 2), matrix(job, 3)
    least = job.scalars[0]
    length, heads = job.integers[0], job.integers[1]
    causal, squares = job.integers[2] != 0, job.integers[3] != 0
    rows, size = products.shape
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    none = out.dtype.type(-np.inf)
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        t, scale = n % length, scales[0, n // length % heads]
        seen = t + 1 if causal else size
        for j in range(seen):
            excess = -one - products[n, j]
            excess = least if excess < least else excess
            distance = log1p(excess + math.sqrt(excess * (excess + two)))
            out[n, j] = scale * (distance * distance if squares else distance)
        if allowed.shape[0]:
            b = n // (length * heads)
            own = out[n, t] if causal else zero
            for j in range(seen):
                out[n, j] = out[n, j] if allowed[b, j] > zero else none
            if causal:
                # a padding position that sees nothing would have no weights to normalize
                out[n, t] = own
        largest, total = largest_of(out[n, :seen]), zero
        for j in range(seen):
            power = exp(out[n, j] - largest)
            power = power if out[n, j] != none else zero
            out[n, j] = power
            total += power
        share = one / total
        for j in range(seen):
            out[n, j] *= share
        for j in range(seen, size):
            out[n, j] = zero


def weights_backward(block: int, pointer: Any) -> None:
    """Gradient of :func:`weights_forward`.

    Matrices: gradient of the weights, weights, products, scales, gradient of the products,
    ``partial`` ``[blocks, H]`` (of the scales). Scalars and integers as there.
    """
    job = read(pointer)
    grad, weights, products = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    scales, out, partial = matrix(job, 3), matrix(job, 4), matrix(job, 5)
    least = job.scalars[0]
    length, heads = job.integers[0], job.integers[1]
    causal, squares = job.integers[2] != 0, job.integers[3] != 0
    rows, size = products.shape
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    partial[block] = zero
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        h = n // length % heads
        scale, seen = scales[0, h], n % length + 1 if causal else size
        mean = zero
        for j in range(seen):
            mean += weights[n, j] * grad[n, j]
        by_scale = zero
        for j in range(seen):
            by_score = weights[n, j] * (grad[n, j] - mean)
            excess = -one - products[n, j]
            excess = least if excess < least else excess
            root = math.sqrt(excess * (excess + two))
            distance = log1p(excess + root)
            slope = (one if root > zero else zero) / (root if root > zero else one)
            if squares:
                slope *= two * distance
                distance *= distance
            by_scale += by_score * distance
            out[n, j] = -scale * by_score * slope
        for j in range(seen, size):
            out[n, j] = zero
        partial[block, h] += by_scale


def _forward(
    products: Tensor, scale: Tensor, squared: bool, allowed: Tensor | None, is_causal: bool
) -> tuple[Made, Kept]:
    products, scale = products.contiguous(), scale.contiguous()
    if allowed is not None:
        allowed = allowed.to(products.dtype).contiguous()
    out, (scalars, integers) = torch.empty_like(products), _options(products, squared, is_causal)
    matrices = (products, scale, allowed, out)
    run(weights_forward, blocks_of(products), matrices, scalars, integers)
    return out, (out, products, scale, squared, is_causal)


def _backward(kept: Kept, grad: Tensor) -> Grads:
    made, products, scale, squared, is_causal = kept
    grad_products, partial = (
        torch.empty_like(products),
        scale.new_empty(blocks_of(products), len(scale)),
    )
    matrices = (grad.contiguous(), made, products, scale, grad_products, partial)
    run(weights_backward, len(partial), matrices, *_options(products, squared, is_causal))
    return grad_products, partial.sum(0)


def _options(
    products: Tensor, squared: bool, is_causal: bool
) -> tuple[tuple[float], tuple[int, ...]]:
    """The scalars and integers of both kernels."""
    # where d^2 is smooth an excess below one unit of rounding is noise; d has a kink there
    least = torch.finfo(products.dtype).eps if squared else 0.0
    _, heads, length, _ = products.shape
    return (least,), (length, heads, is_causal, squared)


def _cases(draw: Draw) -> Iterator[Case]:
    batch, length = draw.batch[0], max(2, min(draw.batch[1], 40))
    # not close to -1: near distance 0 a gradient has few digits in any implementation
    products = -1.2 - draw.c * draw(batch, 2, length, length).square()
    products = products if draw.batch[1] else products[:0]
    scale = -draw(2).exp()
    places = torch.arange(products[:, 0, 0].numel(), device=products.device)
    allowed = (places % 3 != 1).view(len(products), 1, 1, length)
    yield "weights of distances", (products, scale, False, allowed, False)
    yield "causal weights of distances", (products, scale, False, allowed, True)
    yield "weights of squared distances", (products, scale, True, None, False)
    yield "causal weights of squared distances", (products, scale, True, None, True)


WEIGHTS = Operator("weights", plain_weights, cases=_cases, cpu=Kernels(_forward, _backward))
