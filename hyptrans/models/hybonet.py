"""HyboNet: the fully Lorentz Transformer of Chen et al. (2022)."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum

from hyptrans.geometry.space import Space
from hyptrans.layers.attention import LorentzAttention
from hyptrans.layers.embedding import LorentzEmbedding, LorentzPositions
from hyptrans.layers.feed_forward import LorentzFeedForward
from hyptrans.layers.logits import LorentzLogits
from hyptrans.models._config import LorentzConfig, register_sizes
from hyptrans.models._skeleton import HypTransformer, Parts

SIZES = ("tiny", "iwslt_d64", "wmt_d64", "wmt_d128", "wmt_d256", "base")


@dataclass
class HyboNetConfig(LorentzConfig):
    """Options of HyboNet."""

    residual: ChoiceEnum(["full", "space"]) = field(  # type: ignore[valid-type]
        default="full",
        metadata={
            "help": "what a residual is added to: full, all of the linear layer's output, as the "
            "paper's code; space, its space part, as the paper's equation"
        },
    )


class HyboNetParts(Parts):
    """Lorentz layers throughout; no layer norm."""

    def embedding(self, num_embeddings: int, padding_idx: int) -> LorentzEmbedding:
        return LorentzEmbedding(
            num_embeddings,
            self.side.width,
            padding_idx=padding_idx,
            c=self.cfg.curvature,
            storage=self.cfg.lorentz_embedding,
        )

    def positions(self) -> LorentzPositions:
        return LorentzPositions(
            self.side.width,
            self.side.max_positions,
            learned=self.side.learned_positions,
            c=self.cfg.curvature,
            dropout=self.cfg.dropout,
            residual=self.cfg.residual,
        )

    def self_attention(self, *, causal: bool) -> LorentzAttention:
        return self._attention(causal=causal)

    def cross_attention(self) -> LorentzAttention:
        return self._attention(memory_width=self.source.side.width)

    def _attention(self, **role: Any) -> LorentzAttention:
        return LorentzAttention(
            self.side.width,
            self.side.heads,
            c=self.cfg.curvature,
            dropout=self.cfg.dropout,
            attention_dropout=self.cfg.attention_dropout,
            residual=self.cfg.residual,
            half_precision=self.cfg.attention_precision == "half",
            **role,
        )

    def feed_forward(self) -> LorentzFeedForward:
        return LorentzFeedForward(
            self.side.width,
            self.side.ffn_width,
            c=self.cfg.curvature,
            dropout=self.cfg.dropout,
            residual=self.cfg.residual,
        )

    def logits(self, num_embeddings: int, padding_idx: int, tied: Any) -> LorentzLogits:
        return LorentzLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part: Any) -> Space:
        return Space("lorentz", self.cfg.curvature)


@register_sizes("hybonet", HyboNetConfig, SIZES)
class HyboNet(HypTransformer):
    """Fully hyperbolic Transformer in the Lorentz model."""

    parts = HyboNetParts
