"""Hypformer whose attention starts with small updates, as centroids in curved space give them."""

from typing import Any

import torch

from hyptrans.fairseq.config import register_sizes
from hyptrans.layers.hypformer_attention import HypformerAttention
from hyptrans.models.hypformer import Hypformer, HypformerConfig, HypformerParts
from hyptrans.seq2seq.parts import Role

UPDATE = 1 / 3
"""Of fresh values of curvature -1, whose times are about 3, the centroid is so much shorter than
the mean as long as all weigh the same."""


class SmallUpdateParts(HypformerParts):
    """Hypformer's; the maps at the end of attention start smaller."""

    def attention(self, role: Role, *, before: Any) -> HypformerAttention:
        attention = super().attention(role, before=before)
        with torch.no_grad():
            attention.out.weight.mul_(UPDATE)
        return attention


@register_sizes("hypformer_small_updates", HypformerConfig, ("tiny", "iwslt_d64"))
class SmallUpdateHypformer(Hypformer):
    """Hypformer whose attention changes states little at first, in a space of any curvature."""

    parts = SmallUpdateParts
