"""HyboNet on spheres altogether: in every layer all points have one time, and nothing gates it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.layers.hybonet import (
    INITIAL_LOG_SCALE,
    LorentzAttention,
    LorentzFeedForward,
    LorentzLinear,
)
from hyptrans.layers.lorentz.residual import SATURATED
from hyptrans.models.hybonet import HyboNetConfig, HyboNetParts

INNER_LOG_SCALE = INITIAL_LOG_SCALE - math.log(2)
"""Fresh queries, keys, values and inner states are as far out as HyboNet's, on average."""


def fix_time(layer: LorentzLinear, log_scale: float) -> None:
    """Let the times of a layer be ``exp(s) + 1/sqrt(c) + 0.1``, whatever its input."""
    width = layer.out_width // (layer.split_heads or 1)
    learns = torch.ones(len(layer.weight))
    learns[::width] = 0
    with torch.no_grad():
        layer.weight[::width] = 0
        layer.bias[::width] = SATURATED
        layer.log_scale.fill_(log_scale)

    def masked(gradient: Tensor) -> Tensor:
        rows = learns.to(gradient)
        return gradient * (rows if gradient.dim() == 1 else rows[:, None])

    layer.weight.register_hook(masked)
    layer.bias.register_hook(masked)


class OneTimeAttention(LorentzAttention):
    """HyboNet's attention between points of one time: ordinary weights, Lorentz centroids."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for layer in (m for m in self.modules() if isinstance(m, LorentzLinear)):
            fix_time(layer, INITIAL_LOG_SCALE if layer is self.out else INNER_LOG_SCALE)


class OneTimeParts(HyboNetParts):
    """HyboNet's, without gates of the time."""

    attention_type = OneTimeAttention

    def feed_forward(self, *, before: Any) -> nn.Module:
        block = super().feed_forward(before=before)
        assert isinstance(block, LorentzFeedForward)
        fix_time(block.expand, INNER_LOG_SCALE)
        fix_time(block.contract, INITIAL_LOG_SCALE)
        return block


@register_sizes("one_time", HyboNetConfig, ("tiny", "iwslt_d64"))
class OneTimeHyboNet(HypTransformer):
    """HyboNet whose states have one time in every layer."""

    parts = OneTimeParts
