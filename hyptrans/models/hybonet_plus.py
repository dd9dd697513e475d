"""HyboNet+: HyboNet's attention between Hypformer's maps, curvatures and residuals.

Of the hyperbolic forms that ``recipes/study`` tried it translates best.
"""

from dataclasses import dataclass

from hyptrans.models.hybonet import SIZES
from hyptrans.models.hypformer import ATTENTION, ATTENTIONS, HypformerConfig, HypformerParts
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.support.options import option


@dataclass
class HyboNetPlusConfig(HypformerConfig):
    """Options of Hypformer, with another default."""

    hypformer_attention: str = option(
        "softmax",
        ATTENTION,
        in_formula=True,
        choices=ATTENTIONS,
    )


@register_sizes("hybonet_plus", HyboNetPlusConfig, SIZES)
class HyboNetPlusParts(HypformerParts):
    """Hypformer's maps; attention by Lorentzian distances, as HyboNet's."""
