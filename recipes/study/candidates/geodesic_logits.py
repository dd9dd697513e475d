"""HyboNet whose logits are geodesic distances: not linear in the states, as its own are."""

from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import matrix_product
from hyptrans.layers.decoding_state import State
from hyptrans.layers.lorentz.embedding import LorentzEmbedding
from hyptrans.models.hybonet import HyboNetConfig, HyboNetParts

INITIAL_SLOPE = 8.0
"""Distances of fresh states to fresh tokens are about 3.5 and differ by 0.3."""
LEAST_EXCESS = 1e-5
"""Least ``cosh(d) - 1``: keeps the gradient of arcosh finite where a state is a token's point."""


class GeodesicLogits(nn.Module):
    """``b_v - a d(x, e_v)`` with a learned ``a > 0``: ``exp`` of it is a power of the distance.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.

    Args:
        table: the points ``e_v``.
    """

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.weight.size(0)))
        self.log_slope = nn.Parameter(torch.tensor(INITIAL_SLOPE).log())

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Logits; nothing is kept in a decoding ``state``."""
        c = self.table.c
        cosh = -c * matrix_product(lorentz.flip_time(x), self.table.points().t())
        distance = torch.acosh(cosh.clamp_min(1 + LEAST_EXCESS)) / c**0.5
        return self.bias - self.log_slope.exp() * distance


class GeodesicLogitsParts(HyboNetParts):
    """HyboNet's, and logits by geodesic distance."""

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> GeodesicLogits:
        return GeodesicLogits(tied or self.embedding(num_embeddings, padding_idx))


@register_sizes("geodesic_logits", HyboNetConfig, ("tiny", "iwslt_d64"))
class GeodesicLogitsHyboNet(HypTransformer):
    """HyboNet with logits by geodesic distance."""

    parts = GeodesicLogitsParts
