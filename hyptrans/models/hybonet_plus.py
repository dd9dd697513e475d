"""HyboNet+: HyboNet's attention with Hypformer's maps, curvatures and residuals.

It translates best of the hyperbolic variants in ``recipes/study``.
"""

from dataclasses import dataclass

from hyptrans.models.hybonet import SIZES
from hyptrans.models.hypformer import ATTENTION, ATTENTIONS, HypformerConfig, HypformerParts
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.support.options import option


@dataclass
class HyboNetPlusConfig(HypformerConfig):
    """Hypformer's options, with softmax attention as the default."""

    hypformer_attention: str = option("softmax", ATTENTION, in_formula=True, choices=ATTENTIONS)


@register_sizes("hybonet_plus", HyboNetPlusConfig, SIZES)
class HyboNetPlusParts(HypformerParts):
    """Hypformer's maps with HyboNet's attention by Lorentzian distances."""
