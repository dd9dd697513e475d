"""The end of a sublayer of the Poincare ball, from a matrix product to points, in one pass."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import poincare_residual_cpu
from hyptrans.kernels.backend import applied, backend, blocks_of, run
from hyptrans.kernels.dropout import drawn_seed, threshold_and_scale
from hyptrans.kernels.poincare import ball_scalars


def norm_residual(
    x: Tensor,
    z: Tensor,
    bias: Tensor,
    beta: Tensor,
    gain: Tensor,
    shift: Tensor,
    *,
    c: float,
    epsilon: float,
    dropout: float,
) -> Tensor:
    """Return the points ``x (+) beta (x) (z (+) bias)``, normalized as tangents.

    This is the layer norm of vectors in units of ``1 / sqrt(d)``; gain, shift and the ``epsilon``
    added to the variance are in these units too.

    Args:
        x: points.
        z: results of a matrix product: the update's tangents without their bias.
        bias: the tangent of the point to Mobius-add to the update.
        beta: the factor of the update.
        gain: gain of the norm.
        shift: shift of the norm.
        c: the ball has curvature ``-c``.
        epsilon: see above.
        dropout: probability of zeroing a number of the update's tangent; 0 when not training.

    Shapes: x and z ``[..., d]``, bias, gain and shift ``[d]``, beta ``[]`` -> ``[..., d]``.
    Source: HVT eq. 7, 11, 12, 26 and 30.
    """
    x, z, *others = (at_least_float32(t) for t in (x, z, bias, beta, gain, shift))
    bias, beta, gain, shift = others
    alike = x.shape == z.shape and all(t.dtype == x.dtype for t in (z, *others))
    alike = alike and bias.shape == gain.shape == shift.shape == x.shape[-1:] and not beta.dim()
    if not alike or dropout == 1 or backend(x) == "eager":
        update = F.dropout(poincare.add_tangents(z, bias, c=c), dropout)
        total = poincare.add_tangents(poincare.log_origin(x, c=c), update * beta, c=c)
        return poincare.exp_origin(plain_norm(total, gain, shift, epsilon), c=c)
    seed = drawn_seed() if dropout else 0
    return applied(_NormResidual, x, z, *others, (c, epsilon, dropout, seed))


def plain_norm(u: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> Tensor:
    """Return LayerNorm of vectors, with gain, shift and epsilon in units of ``1 / sqrt(d)``.

    Shapes: ``u [..., d]``, ``gain`` and ``shift`` ``[d]``. Source: HVT eq. 11 and 12.
    """
    width = u.size(-1)
    unit = width**-0.5
    return F.layer_norm(u, (width,), gain * unit, shift * unit, epsilon / width)


class _NormResidual(torch.autograd.Function):
    """Kernels of :func:`norm_residual`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Any) -> Tensor:
        *tensors, (c, epsilon, dropout, seed) = others
        operands = [t.contiguous() for t in (x, *tensors)]
        out, width = torch.empty_like(operands[0]), x.size(-1)
        threshold, factor = threshold_and_scale(dropout)
        ctx.scalars = (*ball_scalars(x, c), epsilon / width, width**-0.5, factor)
        ctx.integers = seed, threshold
        run(poincare_residual_cpu.forward, (*operands, out), ctx.scalars, ctx.integers)
        ctx.save_for_backward(*operands)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        operands = ctx.saved_tensors
        x, width = operands[0], grad.size(-1)
        grad_x, grad_z = torch.empty_like(x), torch.empty_like(x)
        partial = x.new_empty(blocks_of(x), 3 * width + 1)
        matrices = (grad.contiguous(), *operands, grad_x, grad_z, partial)
        run(poincare_residual_cpu.backward, matrices, ctx.scalars, ctx.integers)
        by_bias, by_gain, by_shift, by_beta = partial.sum(0).split([width, width, width, 1])
        return grad_x, grad_z, by_bias, by_beta.view(()), by_gain, by_shift, None
