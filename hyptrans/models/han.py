"""HAN: fairseq's Transformer with the hyperbolic attention of Gulcehre et al. (2018).

The paper's best result (``big``, 28.52 BLEU) uses sigmoid weights. Its table says with pseudo-polar
coordinates, its text says without.
"""

from dataclasses import dataclass
from typing import Any

from hyptrans.geometry.precision import DEFAULT_MAX_RADIUS
from hyptrans.geometry.space import Space
from hyptrans.layers.euclidean import AddedPositions, DotProductLogits, FeedForward, ScaledEmbedding
from hyptrans.layers.han import COORDINATES, WEIGHTS, HyperbolicAttention
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import SkeletonConfig
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.sizes import SIZES
from hyptrans.support.options import option


@dataclass
class HANConfig(SkeletonConfig):
    """Options of HAN."""

    han_coordinates: str = option(
        "polar",
        "how vectors become points: polar, a direction and a radius; cartesian, "
        "the space coordinates",
        in_formula=True,
        choices=COORDINATES,
    )
    han_weights: str = option(
        "softmax",
        "how distances become attention weights: softmax, or sigmoid, where keys do not compete",
        in_formula=True,
        choices=WEIGHTS,
    )
    han_max_radius: float = option(
        DEFAULT_MAX_RADIUS,
        "largest distance of a point from the origin (curvature -1)",
        in_formula=True,
    )


@register_sizes("han", HANConfig, SIZES)
class HANParts(Parts):
    """The Transformer's parts with attention in hyperbolic space; states are vectors."""

    def embedding(self, num_embeddings: int, padding_idx: int) -> ScaledEmbedding:
        return self.make_embedding(ScaledEmbedding, num_embeddings, padding_idx)

    def positions(self, *, before: Any) -> AddedPositions:
        return self.make_positions(AddedPositions)

    def attention(self, role: Role, *, before: Any) -> HyperbolicAttention:
        return self.make_attention(
            HyperbolicAttention,
            role,
            coordinates=self.cfg.han_coordinates,
            weights=self.cfg.han_weights,
            max_radius=self.cfg.han_max_radius,
        )

    def feed_forward(self, *, before: Any) -> FeedForward:
        return self.make_feed_forward(FeedForward)

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> DotProductLogits:
        return DotProductLogits(num_embeddings, self.side.width, table=tied)

    def space(self, part: Any) -> Space:
        return Space("euclidean")
