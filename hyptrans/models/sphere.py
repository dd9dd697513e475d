"""HyboNet without the hyperboloid, for comparison: states lie on spheres in Euclidean space."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from hyptrans.geometry.space import Space
from hyptrans.layers.sphere import SphereAttention, SphereFeedForward, SphereLogits, SpherePositions
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import SkeletonConfig, dropout_of_inputs
from hyptrans.seq2seq.parts import Parts, Role


@dataclass
class SphereConfig(SkeletonConfig):
    """The options that all architectures have."""

    attention_dropout: float = dropout_of_inputs()


@register_sizes("sphere", SphereConfig, ("tiny", "iwslt_d64"))
class SphereParts(Parts):
    """Normalized linear maps, with dot products and means as attention."""

    rotates = True

    def embedding(self, num_embeddings: int, padding_idx: int) -> nn.Embedding:
        table = nn.Embedding(num_embeddings, self.side.width, padding_idx)
        nn.init.normal_(table.weight, std=self.side.width**-0.5)
        nn.init.zeros_(table.weight[padding_idx])
        return table

    def positions(self, *, before: Any) -> SpherePositions:
        return self.make_positions(SpherePositions)

    def attention(self, role: Role, *, before: Any) -> SphereAttention:
        return self.make_attention(SphereAttention, role)

    def feed_forward(self, *, before: Any) -> SphereFeedForward:
        return self.make_feed_forward(SphereFeedForward)

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> SphereLogits:
        return SphereLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part: Any) -> Space:
        return Space("euclidean")
