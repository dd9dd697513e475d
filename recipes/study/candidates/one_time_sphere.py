"""All that the other candidates of one time do: what is left of HyboNet is its sphere."""

from typing import Any

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.layers.hybonet import LorentzPositions
from hyptrans.models.hybonet import HyboNetConfig

from .one_time import INNER_LOG_SCALE, fix_time
from .one_time_flat import OneTimeFlatParts
from .one_time_mean import MeanAttention
from .one_time_unread import UnreadAttention, UnreadParts, leave_times_unread


class UnreadMeanAttention(MeanAttention, UnreadAttention):
    """Means of space coordinates, between layers that read no times."""


class OneTimeSphereParts(OneTimeFlatParts, UnreadParts):
    """Points of one time, positions included, that nothing reads; means, and flat logits."""

    attention_type = UnreadMeanAttention

    def positions(self, *, before: Any) -> LorentzPositions:
        positions = LorentzPositions(
            self.side.width,
            self.side.max_positions,
            learned=self.side.learned_positions,
            c=self.cfg.curvature,
            dropout=self.cfg.dropout,
            residual="space",
        )
        fix_time(positions.linear, INNER_LOG_SCALE)
        leave_times_unread(positions.linear)
        return positions


@register_sizes("one_time_sphere", HyboNetConfig, ("tiny", "iwslt_d64"))
class OneTimeSphereHyboNet(HypTransformer):
    """HyboNet with spheres for its hyperboloids, but of as many numbers as its points have."""

    parts = OneTimeSphereParts
