"""Hyperbolic layers as ``torch.nn`` modules; usable without fairseq.

This module exports the layers that models are built of; :mod:`hyptrans.geometry` has the formulas.
"""

from hyptrans.layers.attention import Attention
from hyptrans.layers.curvature import Curvature
from hyptrans.layers.euclidean import (
    AddedPositions,
    DotProductLogits,
    FeedForward,
    ResidualNorm,
    ScaledEmbedding,
)
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.layers.hvt import (
    MobiusLinear,
    PoincareEmbedding,
    PoincareFeedForward,
    PoincareLogits,
    PoincarePositions,
)
from hyptrans.layers.hvt_attention import PoincareAttention
from hyptrans.layers.hybonet import (
    LorentzAttention,
    LorentzFeedForward,
    LorentzLinear,
    LorentzPositions,
)
from hyptrans.layers.hypformer import (
    HTC,
    HypformerEmbedding,
    HypformerFeedForward,
    HypformerLogits,
    HypformerPositions,
)
from hyptrans.layers.hypformer_attention import LinearAttention, SoftmaxAttention
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits

__all__ = [
    "HTC",
    "AddedPositions",
    "Attention",
    "Curvature",
    "DotProductLogits",
    "FeedForward",
    "HyperbolicAttention",
    "HypformerEmbedding",
    "HypformerFeedForward",
    "HypformerLogits",
    "HypformerPositions",
    "LinearAttention",
    "LorentzAttention",
    "LorentzEmbedding",
    "LorentzFeedForward",
    "LorentzLinear",
    "LorentzLogits",
    "LorentzPositions",
    "MobiusLinear",
    "PoincareAttention",
    "PoincareEmbedding",
    "PoincareFeedForward",
    "PoincareLogits",
    "PoincarePositions",
    "ResidualNorm",
    "ScaledEmbedding",
    "SoftmaxAttention",
]
