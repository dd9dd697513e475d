"""HyboNet+: HyboNet's attention between Hypformer's maps, curvatures and residuals.

Of the hyperbolic forms that ``recipes/study`` tried it translates best.
"""

from dataclasses import dataclass

from fairseq.dataclass import ChoiceEnum

from hyptrans.fairseq.config import register_sizes
from hyptrans.models.hybonet import SIZES
from hyptrans.models.hypformer import ATTENTION, ATTENTIONS, Hypformer, HypformerConfig
from hyptrans.support.options import option


@dataclass
class HyboNetPlusConfig(HypformerConfig):
    """Options of Hypformer, with another default."""

    hypformer_attention: ChoiceEnum(ATTENTIONS) = option(  # type: ignore[valid-type]
        "softmax",
        ATTENTION,
        in_formula=True,
    )


@register_sizes("hybonet_plus", HyboNetPlusConfig, SIZES)
class HyboNetPlus(Hypformer):
    """Transformer of Hypformer's maps that attends by Lorentzian distances, as HyboNet does."""
