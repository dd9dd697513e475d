"""HyboNet: the fully Lorentz Transformer of Chen et al. (2022)."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from hyptrans.geometry.space import Space
from hyptrans.layers.hybonet import (
    RESIDUALS,
    LorentzAttention,
    LorentzFeedForward,
    LorentzPositions,
)
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import LorentzConfig
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.support.options import option

SIZES = ("tiny", "iwslt_d64", "wmt_d64", "wmt_d128", "wmt_d256", "base")


@dataclass
class HyboNetConfig(LorentzConfig):
    """Options of HyboNet."""

    hybonet_residual: str = option(
        "full",
        "how a residual enters: full, added to all of the linear layer's output, as in "
        "the paper's code; space, to its space part, as in the paper's equation; logit, to the "
        "time as its sigmoid's argument; sphere, to the space part, with one time for all "
        "states; centroid, by the Lorentz centroid with a learned weight",
        in_formula=True,
        choices=RESIDUALS,
    )


@register_sizes("hybonet", HyboNetConfig, SIZES)
class HyboNetParts(Parts):
    """Lorentz layers throughout, without layer norm."""

    rotates = True

    def embedding(self, num_embeddings: int, padding_idx: int) -> LorentzEmbedding:
        options = {"c": self.cfg.curvature, "storage": self.cfg.embedding_storage}
        return self.make_embedding(LorentzEmbedding, num_embeddings, padding_idx, **options)

    def positions(self, *, before: Any) -> LorentzPositions:
        # a position's vector is not a point, and the other forms of residual need points
        form = "space" if self.cfg.hybonet_residual == "space" else "full"
        return self.make_positions(LorentzPositions, c=self.cfg.curvature, residual=form)

    def attention(self, role: Role, *, before: Any) -> LorentzAttention:
        options = {"c": self.cfg.curvature, "residual": self.cfg.hybonet_residual}
        return self.make_attention(LorentzAttention, role, **options)

    def feed_forward(self, *, before: Any) -> nn.Module:
        options = {"c": self.cfg.curvature, "residual": self.cfg.hybonet_residual}
        return self.make_feed_forward(LorentzFeedForward, **options)

    def logits(self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any) -> nn.Module:
        return LorentzLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part: Any) -> Space:
        return Space("lorentz", self.cfg.curvature)
