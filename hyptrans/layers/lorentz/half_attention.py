"""Fused attention between points of the hyperboloid in half precision.

Rounding both parts of a point takes it off the hyperboloid, by more than 1 at time 50. Here its
space part is rounded and the time recomputed to fit, which gives a point again, a little displaced;
and as a time needs more digits than a number of half precision has, it is stored as a sum of
several. A Lorentz product is then an ordinary product of a few more numbers, whose only error is
that of the displacement.

Values are stored as differences from their mean, so that the rounding of a weighted mean, and of
what its gradient is computed from, is relative to how far apart they are, not to how far out.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz

PARTS = {torch.float16: 2, torch.bfloat16: 3}
"""How many numbers of 11 or 8 significant bits hold a time of float32, which has 24; see
:func:`split_time`."""

ALIGNMENT = 8
"""Fused kernels take widths that are multiples of this, and would copy others to pad them."""


def mix(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    dtype: torch.dtype,
    c: lorentz.CurvatureLike,
    allowed: Tensor | None,
    is_causal: bool,
) -> Tensor:
    """Weighted means of the values in float32, from products in half precision.

    The query comes as in :func:`hyptrans.layers.lorentz.mix.lorentz_mix`, which normalizes the
    result. As the weights add up to one, ``|m|_L^2`` of a mean ``m`` is ``1/c`` at least; where
    times are up to ``t`` and values up to ``u`` apart, the rounding of the kernel's output changes
    it by up to ``2^-6 t u`` in bfloat16 and ``2^-9 t u`` in float16. Where that brings it below its
    bound, the time is raised.

    Shapes: as :meth:`hyptrans.layers.attention.Attention.mix`. With ``is_causal`` later positions
    move the mean that is subtracted, hence the rounding of earlier ones, and nothing else.
    Range: in float16, numbers of queries and keys, and differences of values, up to 65504; beyond,
    the result is NaN.
    """
    parts = range(PARTS[dtype])
    # a product of two parts further down is below the last digit of float32
    pairs = [(i, j) for i in parts for j in parts if i + j < len(parts)]
    space = value.size(-1) - 1
    width = -(-(space + len(pairs)) // ALIGNMENT) * ALIGNMENT
    # where all values move, their means move along: so the center has no gradient
    center = value.detach().mean(2, keepdim=True)
    query = _store(query, None, dtype, [i for i, _ in pairs], width)
    key = _store(key, None, dtype, [j for _, j in pairs], width)
    # a time is the largest number of a point; fused kernels may take weights of NaN for no weights
    beyond = 0 * query[..., :1].detach() + 0 * key[..., :1].detach().amax(2, keepdim=True)
    mixed = F.scaled_dot_product_attention(
        query,
        key,
        _store(value, center, dtype, parts, width),
        attn_mask=allowed,
        is_causal=is_causal,
        scale=1.0,
    )
    # fused attention writes [B, T, H, d]: joined as it lies, heads are merged for free
    mixed, center, beyond = (x.transpose(1, 2) for x in (mixed, center, beyond))
    time = mixed[..., : len(parts)].float().sum(-1, keepdim=True) + center[..., :1] + beyond
    merged = mixed[..., len(parts) : len(parts) + space] + center[..., 1:]
    return _inside(time, merged, c).transpose(1, 2)


def split_time(time: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Numbers of half precision, the largest first, that add up to a ``time`` of float32.

    Exactly in bfloat16, and in float16 to one unit of rounding: 11 and 11 bits of 24, and a sign.
    """
    parts = []
    for _ in range(PARTS[dtype]):
        parts.append(time.to(dtype))
        time = time - parts[-1]
    return parts


def _inside(time: Tensor, space: Tensor, c: lorentz.CurvatureLike) -> Tensor:
    """The vector of this time and space, with the time raised to that of a point at least."""
    with torch.no_grad():  # rounding is what is corrected, and rounding has no gradient
        least = lorentz.time_above(space.square().sum(-1, keepdim=True), c=c)
        lacking = F.relu(least - time)
    return torch.cat([time + lacking, space], dim=-1)


def _store(
    points: Tensor, center: Tensor | None, dtype: torch.dtype, order: Sequence[int], width: int
) -> Tensor:
    """Parts of the time in the given order, the space part, and zeros up to ``width``.

    With a ``center``, of the differences from it; either way the sums are of points.
    """
    stored: Tensor = _Stored.apply(points, center, dtype, tuple(order), width)
    return stored


class _Stored(torch.autograd.Function):
    """See :func:`_store`. Rounding is taken for the addition of a constant."""

    @staticmethod
    def forward(
        ctx: Any,
        points: Tensor,
        center: Tensor | None,
        dtype: torch.dtype,
        order: tuple[int, ...],
        width: int,
    ) -> Tensor:
        time, space = points[..., :1], points[..., 1:]
        if center is None:
            stored = rounded = space.to(dtype)
        else:
            stored = (space - center[..., 1:]).to(dtype)
            rounded = stored + center[..., 1:]
        # t^2 grows by what |s|^2 does: so the scale of a query need not be known, nor c
        growth = ((rounded - space) * (rounded + space)).sum(-1, keepdim=True)
        time = (time.square() + growth).sqrt().copysign(time)
        parts = split_time(time if center is None else time - center[..., :1], dtype)
        ctx.order, ctx.end = order, len(order) + space.size(-1)
        zeros = parts[0].new_zeros(()).expand(*points.shape[:-1], width - ctx.end)
        return torch.cat([*(parts[i] for i in order), stored, zeros], dim=-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # only the first part follows the time: the others are what its rounding has left
        firsts = [i for i, part in enumerate(ctx.order) if part == 0]
        time = torch.cat([grad[..., i : i + 1] for i in firsts], dim=-1).float()
        by_point = grad[..., len(ctx.order) - 1 : ctx.end].float()
        by_point[..., :1] = time.sum(-1, keepdim=True)
        return by_point, None, None, None, None
