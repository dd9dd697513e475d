"""Hyperbolic layers as ``torch.nn`` modules; usable without fairseq.

This module exports the layers that models are built of; :mod:`hyptrans.geometry` has the formulas.
"""

from hyptrans.layers.attention import Attention as Attention
from hyptrans.layers.curvature import Curvature as Curvature
from hyptrans.layers.euclidean import AddedPositions as AddedPositions
from hyptrans.layers.euclidean import DotProductLogits as DotProductLogits
from hyptrans.layers.euclidean import FeedForward as FeedForward
from hyptrans.layers.euclidean import ResidualNorm as ResidualNorm
from hyptrans.layers.euclidean import ScaledEmbedding as ScaledEmbedding
from hyptrans.layers.han import HyperbolicAttention as HyperbolicAttention
from hyptrans.layers.hvt import MobiusLinear as MobiusLinear
from hyptrans.layers.hvt import PoincareEmbedding as PoincareEmbedding
from hyptrans.layers.hvt import PoincareFeedForward as PoincareFeedForward
from hyptrans.layers.hvt import PoincareLogits as PoincareLogits
from hyptrans.layers.hvt import PoincarePositions as PoincarePositions
from hyptrans.layers.hvt_attention import PoincareAttention as PoincareAttention
from hyptrans.layers.hybonet import LorentzAttention as LorentzAttention
from hyptrans.layers.hybonet import LorentzFeedForward as LorentzFeedForward
from hyptrans.layers.hybonet import LorentzLinear as LorentzLinear
from hyptrans.layers.hybonet import LorentzPositions as LorentzPositions
from hyptrans.layers.hypformer import HTC as HTC
from hyptrans.layers.hypformer import HypformerEmbedding as HypformerEmbedding
from hyptrans.layers.hypformer import HypformerFeedForward as HypformerFeedForward
from hyptrans.layers.hypformer import HypformerLogits as HypformerLogits
from hyptrans.layers.hypformer import HypformerPositions as HypformerPositions
from hyptrans.layers.hypformer_attention import LinearAttention as LinearAttention
from hyptrans.layers.hypformer_attention import SoftmaxAttention as SoftmaxAttention
from hyptrans.layers.lorentz import LorentzEmbedding as LorentzEmbedding
from hyptrans.layers.lorentz import LorentzLogits as LorentzLogits
