"""The end of a sublayer of the Poincare ball, from a matrix product to points, in one pass.

There is no kernel for CUDA yet: there :func:`plain_norm_residual` runs.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen, launcher
from hyptrans.kernels.ball.tangents import numbers_of
from hyptrans.kernels.functions import applied, drawn_seed, kept_by
from hyptrans.kernels.operands import Grads


class ResidualOperands(NamedTuple):
    """What :func:`norm_residual` reads."""

    x: Tensor
    """Points ``[..., d]``."""
    z: Tensor
    """Numbers of a matrix product ``[..., d]``: the update's tangents without their bias."""
    bias: Tensor
    """``[d]``: the tangent of the point that is Mobius-added to the update."""
    beta: Tensor
    """``[]``: the update is scaled with it."""
    gain: Tensor
    """``[d]``, of the norm."""
    shift: Tensor
    """``[d]``, of the norm."""


def norm_residual(
    operands: ResidualOperands, *, c: float, epsilon: float, dropout: float
) -> Tensor:
    """The points of ``x (+) beta (x) (z (+) bias)``, normalized as tangents.

    The norm is that of vectors in units of ``1 / sqrt(d)``, with ``epsilon`` added to the variance
    in these units, and gain and shift in them.

    Args:
        operands: points, update and parameters.
        c: the ball has curvature ``-c``.
        epsilon: see above.
        dropout: probability of zeroing a number of the update's tangent; 0 when not training.

    Shapes: ``[..., d]``. Source: HVT eq. 7, 11, 12, 26 and 30.
    """
    operands = ResidualOperands(*(at_least_float32(t) for t in operands))
    x, z, *others = operands
    bias, beta, gain, shift = others
    alike = x.shape == z.shape and all(t.dtype == x.dtype for t in (z, *others))
    alike = alike and bias.shape == gain.shape == shift.shape == x.shape[-1:] and not beta.dim()
    if not alike or dropout == 1 or chosen(x, "tangents") != "numba":
        return plain_norm_residual(operands, c=c, epsilon=epsilon, dropout=dropout)
    seed = drawn_seed() if dropout else 0
    return seeded_norm_residual(operands, seed, c=c, epsilon=epsilon, dropout=dropout)


def seeded_norm_residual(
    operands: ResidualOperands, seed: int, *, c: float, epsilon: float, dropout: float
) -> Tensor:
    """:func:`norm_residual` by the kernel, with dropout by the hashes of a seed."""
    x = operands.x
    width, (threshold, scale) = x.size(-1), kept_by(dropout)
    numbers = (*numbers_of(x, c), epsilon / width, width**-0.5, scale)
    out: Tensor = applied(_NormResidual, *operands, numbers, (seed, threshold))
    return out


def plain_norm_residual(
    operands: ResidualOperands, *, c: float, epsilon: float, dropout: float
) -> Tensor:
    """:func:`norm_residual` in plain torch."""
    kept = F.dropout(poincare.add_tangents(operands.z, operands.bias, c=c), dropout)
    return plain_norm_of_sum(operands, kept, c=c, epsilon=epsilon)


def plain_norm_of_sum(
    operands: ResidualOperands, kept: Tensor, *, c: float, epsilon: float
) -> Tensor:
    """:func:`norm_residual` in plain torch, given what dropout kept of the update's tangents."""
    tangent = poincare.log_origin(operands.x, c=c)
    total = poincare.add_tangents(tangent, kept * operands.beta, c=c)
    return poincare.exp_origin(plain_norm(total, operands.gain, operands.shift, epsilon), c=c)


def plain_norm(u: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> Tensor:
    """LayerNorm of vectors in units of ``1 / sqrt(d)``, in which gain, shift and epsilon are.

    Shapes: ``u [..., d]``, ``gain`` and ``shift`` ``[d]``. Source: HVT eq. 11 and 12.
    """
    width = u.size(-1)
    unit = width**-0.5
    return F.layer_norm(u, (width,), gain * unit, shift * unit, epsilon / width)


class _NormResidual(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, numbers, hashed = given
        operands = [t.contiguous() for t in tensors]
        out = torch.empty_like(operands[0])
        launcher("numba").norm_residual_forward(operands, numbers, hashed, out)
        if ctx is not None:
            ctx.save_for_backward(*operands)
            ctx.numbers, ctx.hashed = numbers, hashed
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Grads:
        operands = ctx.saved_tensors
        grad_x, grad_z = torch.empty_like(operands[0]), torch.empty_like(operands[1])
        sums = launcher("numba").norm_residual_backward(
            grad.contiguous(), operands, ctx.numbers, ctx.hashed, grad_x, grad_z
        )
        width = grad_z.size(-1)
        by_bias, by_gain, by_shift, by_beta = sums.split([width, width, width, 1])
        return grad_x, grad_z, by_bias, by_beta.view(()), by_gain, by_shift, None, None
