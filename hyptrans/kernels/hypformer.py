"""What Hypformer does between matrix products, each part in one pass on the CPU.

There are no kernels for CUDA yet: there the formulas run, ``plain_*`` or made of other operators.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.functions import applied
from hyptrans.kernels.operands import Grads, StepOperands
from hyptrans.kernels.operators import as_scalar, lift

FEATURE_EPSILON = 1e-6
"""Added after ReLU and to the scale, so that a row without a positive number has features."""


def norm_points(
    x: Tensor,
    update: Tensor,
    scale: lorentz.CurvatureLike,
    gain: Tensor,
    bias: Tensor,
    *,
    c: lorentz.CurvatureLike,
    epsilon: float,
) -> Tensor:
    """The points above ``LayerNorm(update + scale x_s)``.

    Shapes: x ``[..., D]``, update ``[..., D - 1]``, gain and bias ``[D - 1]`` -> ``[..., D]``.
    Source: Hypformer eq. 13 and 21.
    """
    x, update, gain, bias = (at_least_float32(t) for t in (x, update, gain, bias))
    alike = x.dtype == update.dtype == gain.dtype == bias.dtype
    alike = alike and x.shape == (*update.shape[:-1], update.size(-1) + 1)
    alike = alike and gain.shape == bias.shape == update.shape[-1:]
    alike = alike and (not isinstance(scale, Tensor) or scale.numel() == 1)
    if not alike or chosen(update, "hypformer", c=c) != "numba":
        return plain_norm_points(x, update, scale, gain, bias, c=c, epsilon=epsilon)
    scale, inverse_c = as_scalar(scale), 1 / as_scalar(c)
    out: Tensor = applied(_NormPoints, x, update, scale, gain, bias, inverse_c, epsilon)
    return out


def plain_norm_points(
    x: Tensor,
    update: Tensor,
    scale: lorentz.CurvatureLike,
    gain: Tensor,
    bias: Tensor,
    *,
    c: lorentz.CurvatureLike,
    epsilon: float,
) -> Tensor:
    """:func:`norm_points` in plain torch."""
    normed = F.layer_norm(update + x[..., 1:] * scale, gain.shape, gain, bias, epsilon)
    return lift(normed, c=c)


def relu_lift(space: Tensor, *, c: lorentz.CurvatureLike) -> Tensor:
    """The points above ``ReLU(space)``: ``[..., D - 1]`` -> ``[..., D]``."""
    space = at_least_float32(space)
    if chosen(space, "hypformer", c=c) != "numba":
        return lift(F.relu(space), c=c)
    out: Tensor = applied(_ReluLift, space, 1 / as_scalar(c))
    return out


def focus(numbers: Tensor, scale: Tensor, power: float) -> Tensor:
    """Features ``phi``: a power that sharpens the direction of a vector and keeps its length.

    ``phi = |u| / |u^p| u^p`` with ``u = (ReLU(numbers) + eps) / (softplus(scale) + eps)``.

    Shapes: numbers ``[..., d]``, scale broadcasts against it -> ``[..., d]``.
    Range: all positive; finite for numbers up to 1e18, also in half precision (float32 inside).
    Source: Hypformer eq. 19; ``scale`` has a number per channel, as a single one would cancel.
    """
    numbers, scale = at_least_float32(numbers), at_least_float32(scale)
    by_head = numbers.dim() == 4 and scale.shape == (numbers.size(1), 1, numbers.size(-1))
    alike = numbers.dtype == scale.dtype
    if power != 2 or not by_head or not alike or chosen(numbers, "hypformer") != "numba":
        return plain_focus(numbers, scale, power)
    out: Tensor = applied(_Focus, numbers, 1 / (F.softplus(scale) + FEATURE_EPSILON))
    return out


def plain_focus(numbers: Tensor, scale: Tensor, power: float) -> Tensor:
    """:func:`focus` in plain torch."""
    u = (F.relu(numbers) + FEATURE_EPSILON) / (F.softplus(scale) + FEATURE_EPSILON)
    # the largest number of a row cancels; dividing by it first keeps the power from overflowing
    # and its length from underflowing
    sharp = (u / u.detach().amax(-1, keepdim=True)).pow(power)
    return sharp * (u.norm(dim=-1, keepdim=True) / sharp.norm(dim=-1, keepdim=True))


def head_maps(scale: Tensor, psi: Tensor) -> Tensor:
    """What :func:`linear_step` and :func:`linear_read` take of a layer.

    Shapes: scale ``[H, 1, d]`` of the features, psi ``[H, d, e]`` -> ``[H, d, 1 + e]``.
    """
    scale, psi = at_least_float32(scale), at_least_float32(psi)
    factors = 1 / (F.softplus(scale) + FEATURE_EPSILON)
    return torch.cat([factors.transpose(1, 2), psi], dim=-1)


def linear_step(
    numbers: tuple[Tensor, Tensor, Tensor],
    key_value: Tensor,
    key_sum: Tensor,
    order: Tensor | None,
    maps: Tensor,
    *,
    least: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """One position of linear attention of power 2 after those in sums, in one pass.

    It is there where :func:`hyptrans.kernels.operators.in_one_pass` says so. Sums of reordered
    hypotheses are read where they stand: ``order`` ``[B]`` has their rows, None stands for 0, 1, ….

    Shapes: numbers of queries, keys and values ``[B, H, 1, .]``, sums ``[R, H, d, e]`` and
    ``[R, H, d]``, maps of :func:`head_maps` -> outputs ``[B, H, 1, e]``, sums ``[B, H, d, e]`` and
    ``[B, H, d]``. Source: Hypformer eq. 15 and 16.

    Raises:
        ValueError: there are not as many rows of sums as of queries.
    """
    query, key, value = (_rows(t) for t in numbers)
    batch, heads, _, d = query.shape
    _check_rows(batch, key_sum, order)
    out = query.new_empty(batch, 1, heads, value.size(-1))
    after, keys_after = (
        query.new_empty(batch, *key_value.shape[1:]),
        query.new_empty(batch, heads, d),
    )
    stored = _stored(key_value, key_sum, order)
    operands = StepOperands(query, key, value, *stored, maps, (FEATURE_EPSILON, least))
    launcher("numba").linear_step(operands, keys_after, after, out)
    return out.transpose(1, 2), after, keys_after


def linear_read(
    query: Tensor,
    key_value: Tensor,
    key_sum: Tensor,
    order: Tensor | None,
    maps: Tensor,
    *,
    least: float,
) -> Tensor:
    """What a few queries get from sums, as :func:`linear_step`; they map themselves.

    Shapes: numbers ``[B, H, T, d]`` -> ``[B, H, T, e]``, in memory positions before heads.
    """
    query = _rows(query)
    _check_rows(len(query), key_sum, order)
    out = query.new_empty(query.size(0), query.size(2), query.size(1), key_value.size(-1))
    stored = _stored(key_value, key_sum, order)
    launcher("numba").linear_read(query, *stored, maps, (FEATURE_EPSILON, least), out)
    return out.transpose(1, 2)


def _check_rows(queries: int, key_sum: Tensor, order: Tensor | None) -> None:
    rows = len(key_sum if order is None else order)
    if rows != queries:
        raise ValueError(f"{queries} rows of queries need as many of sums, got {rows}")


def _stored(
    key_value: Tensor, key_sum: Tensor, order: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Sums and their rows as kernels read them."""
    order = None if order is None else order.contiguous()
    return key_value.contiguous(), key_sum.contiguous(), order


def _rows(numbers: Tensor) -> Tensor:
    """Numbers of which those of a head lie side by side."""
    return numbers if numbers.stride(-1) == 1 else numbers.contiguous()


class _NormPoints(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        update: Tensor,
        scale: lorentz.CurvatureLike,
        gain: Tensor,
        bias: Tensor,
        inverse_c: lorentz.CurvatureLike,
        epsilon: float,
    ) -> Tensor:
        x, update, gain = x.contiguous(), update.contiguous(), gain.contiguous()
        out = torch.empty_like(x)
        numbers = (float(inverse_c), epsilon, float(scale))
        launcher("numba").norm_forward(x, update, gain, bias.contiguous(), numbers, out)
        if ctx is not None:
            ctx.numbers = numbers
            ctx.save_for_backward(x, update, gain, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        x, update, gain, out = ctx.saved_tensors
        grad_x, grad_update = torch.empty_like(x), torch.empty_like(update)
        operands = (grad.contiguous(), x, update, gain, out)
        sums = launcher("numba").norm_backward(operands, ctx.numbers, grad_x, grad_update)
        by_gain, by_bias, others = sums.split([len(gain), len(gain), 2])
        _, _, of_scale, _, _, of_inverse, _ = ctx.needs_input_grad
        by_scale = others[0] if of_scale else None
        by_inverse = others[1] if of_inverse else None
        return grad_x, grad_update, by_scale, by_gain, by_bias, by_inverse, None


class _ReluLift(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, space: Tensor, inverse_c: lorentz.CurvatureLike) -> Tensor:
        out = space.new_empty(*space.shape[:-1], space.size(-1) + 1)
        launcher("numba").relu_lift_forward(space.contiguous(), float(inverse_c), out)
        if ctx is not None:
            ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        (out,) = ctx.saved_tensors
        grad_space = out.new_empty(*out.shape[:-1], out.size(-1) - 1)
        by_inverse = launcher("numba").relu_lift_backward(grad.contiguous(), out, grad_space)
        return grad_space, by_inverse if ctx.needs_input_grad[1] else None


class _Focus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, factors: Tensor) -> Tensor:
        numbers = _rows(numbers)
        factors = factors.contiguous()
        out = numbers.new_empty(numbers.shape)
        launcher("numba").focus_forward(numbers, factors, FEATURE_EPSILON, out)
        if ctx is not None:
            ctx.save_for_backward(numbers, factors)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        numbers, factors = ctx.saved_tensors
        out = numbers.new_empty(numbers.shape)
        by_factors = launcher("numba").focus_backward(
            grad.contiguous(), numbers, factors, FEATURE_EPSILON, out
        )
        return out, by_factors
