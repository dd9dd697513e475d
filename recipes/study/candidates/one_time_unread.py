"""One time in every layer, which no linear layer reads: neither weighed nor dropped."""

from typing import Any

from torch import Tensor, nn

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.layers.hybonet import LorentzLinear
from hyptrans.models.hybonet import HyboNetConfig

from .one_time import OneTimeAttention, OneTimeParts


def leave_times_unread(layer: LorentzLinear) -> None:
    """Keep the columns that read a time where they start, at zero."""
    times = slice(None, None, layer.in_width // layer.merged_heads)

    def masked(gradient: Tensor) -> Tensor:
        gradient = gradient.clone()
        gradient[:, times] = 0
        return gradient

    layer.weight.register_hook(masked)


class UnreadAttention(OneTimeAttention):
    """One time for all points; the layers of queries, keys, values and output read none."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for layer in (m for m in self.modules() if isinstance(m, LorentzLinear)):
            leave_times_unread(layer)


class UnreadParts(OneTimeParts):
    """Points of one time, which nothing reads."""

    attention_type = UnreadAttention

    def feed_forward(self, *, before: Any) -> nn.Module:
        block = super().feed_forward(before=before)
        for layer in (m for m in block.modules() if isinstance(m, LorentzLinear)):
            leave_times_unread(layer)
        return block


@register_sizes("one_time_unread", HyboNetConfig, ("tiny", "iwslt_d64"))
class OneTimeUnreadHyboNet(HypTransformer):
    """HyboNet whose states have one time in every layer, which no linear layer reads."""

    parts = UnreadParts
