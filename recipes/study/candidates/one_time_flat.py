"""One time in every layer, and logits of space coordinates alone."""

from typing import Any

import torch
from torch import Tensor

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.geometry.precision import at_least_float32
from hyptrans.layers.decoding_state import State
from hyptrans.layers.lorentz.logits import LorentzLogits
from hyptrans.models.hybonet import HyboNetConfig

from .one_time import OneTimeParts


class FlatLogits(LorentzLogits):
    """``2 x . e_v + b_v`` of space coordinates: the time of a token's point counts nothing.

    HyboNet's have ``-2 t_x t_v`` besides. Where all states have one time, it takes the more from a
    token the farther out its point is.
    """

    def factors(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        space = at_least_float32(x)[..., 1:]
        features = torch.cat([2 * space, torch.ones_like(space[..., :1])], dim=-1)
        table = torch.cat([self.table.points()[..., 1:], self.bias.unsqueeze(-1)], dim=-1)
        return features, table


class OneTimeFlatParts(OneTimeParts):
    """Points of one time, and flat logits."""

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> FlatLogits:
        return FlatLogits(tied or self.embedding(num_embeddings, padding_idx))


@register_sizes("one_time_flat", HyboNetConfig, ("tiny", "iwslt_d64"))
class OneTimeFlatHyboNet(HypTransformer):
    """HyboNet whose states have one time in every layer and whose logits are flat."""

    parts = OneTimeFlatParts
