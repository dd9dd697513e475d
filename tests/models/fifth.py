"""An architecture that is not in the package: HyboNet's parts around a tangent feed-forward."""

from dataclasses import dataclass

from torch import nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from hyptrans.layers import LorentzAttention, LorentzEmbedding, LorentzLogits, LorentzPositions
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import LorentzConfig
from hyptrans.seq2seq.parts import Parts


class TangentFeedForward(nn.Module):
    """``exp_o(norm(u + dropout(W2 relu(W1 u))))`` of ``u = log_o(x)``."""

    def __init__(self, width, inner_width, *, c, dropout):
        super().__init__()
        self.c = c
        expand, contract = nn.Linear(width - 1, inner_width), nn.Linear(inner_width, width - 1)
        self.maps = nn.Sequential(expand, nn.ReLU(), contract, nn.Dropout(dropout))
        self.norm = nn.LayerNorm(width - 1)

    def forward(self, x):
        u = lorentz.log_origin(x, c=self.c).to(self.norm.weight.dtype)
        u = self.norm(u + self.maps(u)) / u.size(-1) ** 0.5
        return lorentz.exp_origin(u, c=self.c)


@dataclass
class FifthConfig(LorentzConfig):
    """The options of all Lorentz architectures; an own one is ``name: type = option(…)``."""


@register_sizes("fifth", FifthConfig, ["tiny"])
class FifthParts(Parts):
    def embedding(self, num_embeddings, padding_idx):
        options = {"c": self.cfg.curvature, "storage": self.cfg.embedding_storage}
        return self.make_embedding(LorentzEmbedding, num_embeddings, padding_idx, **options)

    def positions(self, *, before):
        return self.make_positions(LorentzPositions, c=self.cfg.curvature)

    def attention(self, role, *, before):
        return self.make_attention(LorentzAttention, role, c=self.cfg.curvature)

    def feed_forward(self, *, before):
        return self.make_feed_forward(TangentFeedForward, c=self.cfg.curvature)

    def logits(self, num_embeddings, padding_idx, *, tied, before):
        return LorentzLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part):
        return Space("lorentz", self.cfg.curvature)
