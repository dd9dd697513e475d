"""HVT: the Poincare-ball Transformer of Fein-Ashley et al. (2024), as an encoder-decoder."""

from dataclasses import dataclass
from typing import Any

from hyptrans.geometry.space import Space
from hyptrans.layers.hvt import (
    PoincareEmbedding,
    PoincareFeedForward,
    PoincareLogits,
    PoincarePositions,
)
from hyptrans.layers.hvt_attention import AGGREGATIONS, PoincareAttention
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import HyperbolicConfig
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.support.options import option


@dataclass
class HVTConfig(HyperbolicConfig):
    """Options of HVT."""

    dropout: float = option(
        0.1,
        "dropout probability on the tangents of positions and of sublayers' outputs",
        of_size=True,
    )
    attention_dropout: float = option(
        0.0, "DropConnect probability for attention weights", of_size=True
    )
    hvt_aggregation: str = option(
        "midpoint",
        "how attention combines values: midpoint, their weighted gyromidpoint; "
        "tangent, the exponential of the weighted mean of their tangents",
        in_formula=True,
        choices=AGGREGATIONS,
    )


@register_sizes("hvt", HVTConfig, ("tiny", "iwslt_d64", "base"))
class HVTParts(Parts):
    """Poincare-ball layers throughout; the logits are computed in the Lorentz model."""

    def embedding(self, num_embeddings: int, padding_idx: int) -> PoincareEmbedding:
        options = {"c": self.cfg.curvature, "storage": self.cfg.embedding_storage}
        return self.make_embedding(PoincareEmbedding, num_embeddings, padding_idx, **options)

    def positions(self, *, before: Any) -> PoincarePositions:
        return self.make_positions(PoincarePositions, c=self.cfg.curvature)

    def attention(self, role: Role, *, before: Any) -> PoincareAttention:
        options = {"c": self.cfg.curvature, "aggregation": self.cfg.hvt_aggregation}
        return self.make_attention(PoincareAttention, role, **options)

    def feed_forward(self, *, before: Any) -> PoincareFeedForward:
        return self.make_feed_forward(PoincareFeedForward, c=self.cfg.curvature)

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> PoincareLogits:
        return PoincareLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part: Any) -> Space:
        return Space("poincare", self.cfg.curvature)
