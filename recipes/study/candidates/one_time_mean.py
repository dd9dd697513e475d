"""One time in every layer, and means of space coordinates in place of Lorentz centroids."""

from torch import Tensor
from torch.nn import functional as F

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.kernels.operators import lift
from hyptrans.kernels.weights import one_mask
from hyptrans.layers.attention import Attention
from hyptrans.layers.decoding_state import Past
from hyptrans.models.hybonet import HyboNetConfig

from .one_time import OneTimeAttention, OneTimeParts


class MeanAttention(OneTimeAttention):
    """HyboNet's weights; values give the point above the mean of their space coordinates.

    The centroid of points of one time ``t`` lies above ``m / sqrt(c (t^2 - |m|^2))`` with the same
    mean ``m``: it is close to the origin as soon as the values differ.
    """

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        allowed, is_causal = one_mask(key, allowed, is_causal)
        # queries come as (-t, s): their products with keys are the Lorentz products
        mean = F.scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, is_causal=is_causal, scale=1.0
        )
        return lift(mean[..., 1:], c=self.c)

    def mix_past(self, query: Tensor, past: Past) -> Tensor:
        return Attention.mix_past(self, query, past)


class OneTimeMeanParts(OneTimeParts):
    """Points of one time, and means."""

    attention_type = MeanAttention


@register_sizes("one_time_mean", HyboNetConfig, ("tiny", "iwslt_d64"))
class OneTimeMeanHyboNet(HypTransformer):
    """HyboNet whose states have one time in every layer and whose values give means."""

    parts = OneTimeMeanParts
