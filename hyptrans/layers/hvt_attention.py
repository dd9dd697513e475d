"""Distance attention of the HVT on the Poincare ball."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.geometry.precision import at_least_float32, full_precision, matrix_product
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.kernels.klein import split_heads
from hyptrans.layers.attention import Attention, Map, masked_softmax
from hyptrans.layers.checks import check_choice
from hyptrans.layers.curvature import derived
from hyptrans.layers.euclidean import inverse_softplus
from hyptrans.layers.hvt import MobiusLinear, ScaledResidual

Aggregation = Literal["midpoint", "tangent"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)

QUERY_KEY_GAIN = 2.0
"""On the Xavier weights of queries and keys. Fresh tangents have length 1, not the sqrt(width) of a
Euclidean Transformer: at width 64 and gain 1 the scores of a query have a standard deviation of
0.16, at gain 2 of 0.66. At more than about 2.5 their points would reach the clamp."""


class PoincareAttention(Attention):
    """Attention with weights from geodesic distances and midpoints of the values.

    The weights are ``softmax(-d(q, k)^2 / (alpha_h sqrt(D)))`` with ``D`` the width of a head and
    ``alpha_h = softplus(.)`` learned per head, starting at 1. A point is split into heads through
    its tangent, which is cut into equal parts, and the heads are merged by joining theirs. As the
    heads of a point are never farther out than the point, none leaves the ball.

    Queries, keys and values are kept lifted onto the hyperboloid of curvature -1 (see
    :func:`poincare.lift_tangent`): one product then gives all distances, and one more all
    midpoints. With ``aggregation="tangent"`` values are kept as tangents.

    Source: HVT eq. 15 to 26 with the geodesic distance in place of eq. 19 and, for the sum of
    eq. 24, which depends on the order of the keys, the gyromidpoint or the exponential of the
    weighted mean of tangents.

    Args:
        width: numbers of a point of the input and the output.
        heads: number of heads.
        memory_width: numbers of a point of the memory; given for cross-attention only.
        c: the ball has curvature ``-c``.
        dropout: see :class:`ScaledResidual`.
        attention_dropout: probability of dropping a weight while training (DropConnect).
        aggregation: what the weights make of the values.
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
            # values come last where there are any
            linear.weight.data[: max(1, projections - 1) * width] *= QUERY_KEY_GAIN
            return linear

        self.add_maps(projection, memory_width)
        self.raw_alpha = nn.Parameter(torch.full((heads,), inverse_softplus(1.0)))
        self.out = MobiusLinear(width, width, c=c)
        self.residual = ScaledResidual(width, c=c, dropout=dropout)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        """Lifted heads ``[B, H, T, d + 1]``; values as they are mixed."""
        u = getattr(self, name).tangent(poincare.log_origin(x, c=self.c))  # [B, T, maps, width]
        u = split_heads(u, self.heads)
        if "v" not in name or self.aggregation == "midpoint":
            return poincare.lift_tangent(u, c=self.c).unbind()
        return *poincare.lift_tangent(u[:-1], c=self.c), u[-1]

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """As the base class says; the heads of the result are tangents."""
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
        """What the values are weighted with, by distances."""
        factor = derived(self.raw_alpha, self._factor)
        apart = poincare.pairwise_squared_distance(query, key)
        return masked_softmax(apart, factor, allowed=allowed, is_causal=is_causal)

    def _factor(self, raw: Tensor) -> Tensor:
        """What squared distances are multiplied by, ``[H, 1, 1]``."""
        alpha = F.softplus(at_least_float32(raw))[:, None, None]
        return -1 / (self.c * (self.width // self.heads) ** 0.5) / alpha

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.residual(x, self.out.product(heads.transpose(1, 2).flatten(2)), self.out.bias)
