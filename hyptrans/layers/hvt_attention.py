"""Distance attention of the HVT on the Poincare ball."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.checks import check_choice
from hyptrans.geometry.precision import at_least_float32, full_precision, matrix_product
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.attention import Attention, Map, masked_softmax, split_heads
from hyptrans.layers.curvature import derived
from hyptrans.layers.euclidean import inverse_softplus
from hyptrans.layers.hvt import MobiusLinear, ScaledResidual

Aggregation = Literal["midpoint", "tangent"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)

QUERY_KEY_GAIN = 2.0
"""Gain of the Xavier weights of queries and keys. Fresh tangents have length 1, not sqrt(width) as
in a Euclidean Transformer: at width 64 the scores of a query have a standard deviation of 0.16 with
gain 1 and of 0.66 with gain 2. Above a gain of about 2.5 the points would reach the clamp."""


class PoincareAttention(Attention):
    """Attention with weights from geodesic distances; mixes values into their midpoints.

    The weights are ``softmax(-d(q, k)^2 / (alpha_h sqrt(D)))`` with ``D`` the width of a head and
    ``alpha_h = softplus(.)`` learned per head, starting at 1. The layer splits a point into heads
    by cutting its tangent into equal parts, and merges heads by concatenating their tangents. A
    head of a point is never farther out than the point, so none leaves the ball.

    Queries, keys and values are lifted onto the hyperboloid of curvature -1 (see
    :func:`poincare.lift_tangent`): one product then gives all distances, and one more gives all
    midpoints. With ``aggregation="tangent"`` values stay tangents.

    Source: HVT eq. 15 to 26. The geodesic distance replaces eq. 19; the gyromidpoint, or the
    exponential of the weighted mean of tangents, replaces the sum of eq. 24, which depends on the
    order of the keys.

    Args:
        width: coordinates of an input or output point.
        heads: number of heads.
        memory_width: coordinates of a point of the memory; for cross-attention only.
        c: the ball has curvature ``-c``.
        dropout: see :class:`ScaledResidual`.
        attention_dropout: probability of dropping a weight while training (DropConnect).
        aggregation: how to mix the weighted values.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or the aggregation is unknown.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        memory_width: int | None = None,
        c: float = 1.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        aggregation: Aggregation = "midpoint",
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        check_choice("aggregation", aggregation, AGGREGATIONS)
        self.c = c
        self.attention_dropout, self.aggregation = attention_dropout, aggregation

        def projection(in_width: int, projections: int) -> MobiusLinear:
            linear = MobiusLinear(in_width, width, c=c, projections=projections)
            # the values come last if there are any
            linear.weight.data[: max(1, projections - 1) * width] *= QUERY_KEY_GAIN
            return linear

        self.add_maps(projection, memory_width)
        self.raw_alpha = nn.Parameter(torch.full((heads,), inverse_softplus(1.0)))
        self.out = MobiusLinear(width, width, c=c)
        self.residual = ScaledResidual(width, c=c, dropout=dropout)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        """Return lifted heads ``[B, H, T, d + 1]``; values stay tangents for ``"tangent"``."""
        u = getattr(self, name).tangent(poincare.log_origin(x, c=self.c))  # [B, T, maps, width]
        u = split_heads(u, self.heads)
        if "v" not in name or self.aggregation == "midpoint":
            return poincare.lift_tangent(u, c=self.c).unbind()
        return *poincare.lift_tangent(u[:-1], c=self.c), u[-1]

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Mix the values for every query; the heads of the result are tangents."""
        with full_precision(query):
            weights = self.weights(query, key, allowed, is_causal=is_causal)
            weights = relu_dropout(weights, self.attention_dropout, training=self.training)
            mixed = matrix_product(weights, value)
            if self.aggregation == "tangent":
                return mixed
            return poincare.centroid_tangent(mixed, c=self.c)

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """Return the weights of the values, computed from distances."""
        factor = derived(self.raw_alpha, self._factor)
        apart = poincare.pairwise_squared_distance(query, key)
        return masked_softmax(apart, factor, allowed=allowed, is_causal=is_causal)

    def _factor(self, raw: Tensor) -> Tensor:
        """Return the factor of squared distances, ``[H, 1, 1]``."""
        alpha = F.softplus(at_least_float32(raw))[:, None, None]
        return -1 / (self.c * (self.width // self.heads) ** 0.5) / alpha

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.residual(x, self.out.product(heads.transpose(1, 2).flatten(2)), self.out.bias)
