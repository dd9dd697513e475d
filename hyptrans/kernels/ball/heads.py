"""What attention in the Poincare ball does with heads, each in one pass on the CPU.

There are no kernels for CUDA yet: there the formulas of :mod:`hyptrans.geometry.poincare` run.
"""

from torch import Tensor

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.backend import chosen
from hyptrans.kernels.ball.tangents import numbers_of
from hyptrans.kernels.heads import cut, of_sums, points_of
from hyptrans.kernels.operands import MOST_PROJECTIONS


def lift_heads(u: Tensor, heads: int, *, c: float = 1.0) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.poincare.lift_tangent` of the heads that tangents are cut into.

    Shapes: ``[B, T, P, H d]`` -> ``P`` tensors ``[B, H, T, d + 1]``.
    """
    u = at_least_float32(u)
    if u.size(2) > MOST_PROJECTIONS or chosen(u, "tangents") != "numba":
        return poincare.lift_tangent(cut(u, heads), c=c).unbind()
    return points_of(u, heads, "lift_tangent", numbers_of(u, c), more=1)


def centroid_tangent(total: Tensor, *, c: float = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.poincare.centroid_tangent` of heads.

    Shapes: ``[B, H, T, d + 1]`` -> ``[B, H, T, d]``, in memory positions before heads.
    """
    total = at_least_float32(total)
    if chosen(total, "tangents") != "numba":
        return poincare.centroid_tangent(total, c=c)
    c, _, epsilon = numbers_of(total, c)
    numbers = (c, poincare.max_slope(total.dtype), epsilon, poincare.LEAST_TOTAL)
    return of_sums(total, "centroid", numbers)
