"""An architecture that is not in the package: HyboNet's parts around a tangent feed-forward."""

from dataclasses import dataclass

from torch import nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from hyptrans.layers import LorentzAttention, LorentzEmbedding, LorentzLogits, LorentzPositions
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import HyperbolicConfig
from hyptrans.seq2seq.parts import Parts


class TangentFeedForward(nn.Module):
    """``exp_o(norm(u + W2 relu(W1 u)))`` of ``u = log_o(x)``."""

    def __init__(self, width, inner_width):
        super().__init__()
        expand, contract = nn.Linear(width - 1, inner_width), nn.Linear(inner_width, width - 1)
        self.maps = nn.Sequential(expand, nn.ReLU(), contract)
        self.norm = nn.LayerNorm(width - 1)

    def forward(self, x):
        u = lorentz.log_origin(x).to(self.norm.weight.dtype)
        return lorentz.exp_origin(self.norm(u + self.maps(u)) / u.size(-1) ** 0.5)


@dataclass
class FifthConfig(HyperbolicConfig):
    """The options that all have."""


@register_sizes("fifth", FifthConfig, ["tiny"])
class FifthParts(Parts):
    def embedding(self, num_embeddings, padding_idx):
        return LorentzEmbedding(num_embeddings, self.side.width, padding_idx=padding_idx)

    def positions(self, *, before):
        side = self.side
        return LorentzPositions(side.width, side.max_positions, learned=side.learned_positions)

    def attention(self, role, *, before):
        options = {"memory_width": role.memory_width, "causal": role.causal}
        return LorentzAttention(self.side.width, self.side.heads, **options)

    def feed_forward(self, *, before):
        return TangentFeedForward(self.side.width, self.side.ffn_width)

    def logits(self, num_embeddings, padding_idx, *, tied, before):
        return LorentzLogits(tied or self.embedding(num_embeddings, padding_idx))

    def space(self, part):
        return Space("lorentz")
