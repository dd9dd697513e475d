"""Hyperbolic attention of an otherwise Euclidean Transformer (Gulcehre et al. 2018, HAN).

Linear maps give numbers that the layer reads as points of the hyperboloid of curvature -1. The
weights come from the distances between queries and keys. The layer computes the Einstein midpoint
of the values in Klein coordinates, where it is an ordinary vector for the rest of the Transformer.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import klein
from hyptrans.geometry.checks import check_choice
from hyptrans.geometry.precision import (
    DEFAULT_MAX_RADIUS,
    LARGEST_MAX_RADIUS,
    at_least_float32,
    full_precision,
)
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.attention import Map, masked_softmax, split_heads
from hyptrans.layers.curvature import derived
from hyptrans.layers.euclidean import DotProductAttention, inverse_softplus

Coordinates = Literal["polar", "cartesian"]
COORDINATES: tuple[Coordinates, ...] = get_args(Coordinates)
Weights = Literal["softmax", "sigmoid"]
WEIGHTS: tuple[Weights, ...] = get_args(Weights)


def _beta(raw: Tensor) -> Tensor:
    return F.softplus(at_least_float32(raw))[:, None, None]


class HyperbolicAttention(DotProductAttention):
    """Attention with hyperbolic distances and midpoints, then residual and layer norm.

    Weights are ``softmax_j(-beta d(q, k_j))`` or ``sigmoid(-beta d(q, k_j) - c)``; ``beta > 0`` and
    ``c`` are learned for each head. Softmax drops ``c``, so only sigmoid has it. As the midpoint
    does not depend on the scale of the weights, the sigmoid weights are computed as
    ``softmax_j(log sigmoid(score))``, which cannot underflow.

    Source: HAN eq. 2 and 3; the rest as in fairseq's Transformer, initial values included. A head
    has ``width / heads`` space dimensions; polar coordinates take one more number for the radius.

    The arguments that are not listed are those of
    :class:`hyptrans.layers.euclidean.DotProductAttention`.

    Args:
        coordinates: how to read the numbers of the linear maps as points.
        weights: function that turns scores into weights.
        max_radius: greatest distance of a point from the origin.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, an option has no such value, or
            ``max_radius`` is out of range.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        memory_width: int | None = None,
        coordinates: Coordinates = "polar",
        weights: Weights = "softmax",
        max_radius: float = DEFAULT_MAX_RADIUS,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        check_choice("coordinates", coordinates, COORDINATES)
        check_choice("weights", weights, WEIGHTS)
        if not 0 < max_radius <= LARGEST_MAX_RADIUS:
            raise ValueError(
                f"max_radius must be above 0 and at most {LARGEST_MAX_RADIUS}, as squares of "
                f"products of points farther out overflow in float32, got {max_radius}"
            )
        super().__init__(
            width,
            heads,
            memory_width=memory_width,
            map_width=width + heads if coordinates == "polar" else width,
            dropout=dropout,
            attention_dropout=attention_dropout,
            causal=causal,
        )
        self.coordinates, self.max_radius = coordinates, max_radius
        self.raw_beta = nn.Parameter(torch.full((heads,), inverse_softplus(1.0)))
        self.c = nn.Parameter(torch.zeros(heads)) if weights == "sigmoid" else None

    @property
    def beta(self) -> Tensor:
        """Return one positive number per head, ``[H, 1, 1]``."""
        return derived(self.raw_beta, _beta)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        """Return points ``[B, H, T, D / H + 1]``, read from the output of a linear map."""
        z = getattr(self, name)(x).unflatten(-1, (len(name), -1))  # [B, T, maps, H * n]
        points = klein.polar_points if self.coordinates == "polar" else klein.cartesian_points
        return points(split_heads(z, self.heads), self.max_radius).unbind()

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Return midpoints in Klein coordinates, ``[B, H, T, D / H]``."""
        with full_precision(query):
            weights = self.weights(query, key, allowed, is_causal=is_causal)
            weights = relu_dropout(weights, self.attention_dropout, training=self.training)
            return klein.midpoint(weights, value)

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """Return the weights of the values, computed from distances."""
        scores, factor = klein.distances(query, key), -self.beta
        if self.c is not None:
            c = at_least_float32(self.c)[:, None, None]
            scores, factor = F.logsigmoid(torch.addcmul(-c, scores, factor)), torch.ones_like(c)
        return masked_softmax(scores, factor, allowed=allowed, is_causal=is_causal)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return super().merge(heads.to(self.out.weight.dtype), x)
