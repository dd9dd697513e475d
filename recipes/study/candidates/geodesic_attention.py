"""HyboNet with attention by geodesic distances in place of squared Lorentzian ones."""

from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, matrix_product
from hyptrans.layers.attention import Attention, attention_weights
from hyptrans.layers.decoding_state import Past
from hyptrans.layers.hybonet import LorentzAttention
from hyptrans.models.hybonet import HyboNetConfig, HyboNetParts

INITIAL_TAU = 0.5
LEAST_EXCESS = 1e-5
"""Least ``cosh(d) - 1``: keeps the gradient of arcosh finite where a query is a key."""


class GeodesicAttention(LorentzAttention):
    """Weights ``softmax(-d(q, k) / tau)`` with a learned ``tau``, then centroids, as HyboNet's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        nn.init.constant_(self.tau, INITIAL_TAU)

    def _query_factor(self) -> Tensor:
        # queries come as (-t, s): their products with keys are the Lorentz products
        return torch.ones_like(self.tau)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        weights = attention_weights(
            self.scores(query, key),
            allowed=allowed,
            is_causal=is_causal,
            dropout=0.0,
            training=self.training,
        )
        return lorentz.centroid(value, weights, c=self.c)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Logarithms of the weights, up to a constant per query."""
        cosh = -self.c * matrix_product(query, key.transpose(-1, -2))
        distance = torch.acosh(cosh.clamp_min(1 + LEAST_EXCESS)) / self.c**0.5
        return -distance / at_least_float32(self.tau)

    def mix_past(self, query: Tensor, past: Past) -> Tensor:
        return Attention.mix_past(self, query, past)


class GeodesicAttentionParts(HyboNetParts):
    """HyboNet's, and attention by geodesic distance."""

    attention_type = GeodesicAttention


@register_sizes("geodesic_attention", HyboNetConfig, ("tiny", "iwslt_d64"))
class GeodesicAttentionHyboNet(HypTransformer):
    """HyboNet with attention by geodesic distance."""

    parts = GeodesicAttentionParts
