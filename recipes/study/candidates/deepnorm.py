"""The Euclidean post-norm twin with DeepNorm: what makes post-norm learn, without a geometry."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from torch import Tensor, nn

from hyptrans.seq2seq.sizes import flags_of


def scaled_sum(weight: float, x: Tensor, residual: Tensor) -> Tensor:
    """``weight residual + x``, of which fairseq takes the layer norm."""
    return weight * residual + x


def set_up(layers: Iterable[Any], *, weight: float, gain: float) -> None:
    """Weigh what goes past a block, and let blocks start with a small output."""
    for layer in layers:
        layer.residual_connection = partial(scaled_sum, weight)
        # torch's own layer knows no such weight
        layer.can_use_fastpath = False
        small = [layer.fc1, layer.fc2]
        for attention in (layer.self_attn, getattr(layer, "encoder_attn", None)):
            if attention is not None:
                small += [attention.v_proj, attention.out_proj]
                nn.init.xavier_normal_(attention.q_proj.weight)
                nn.init.xavier_normal_(attention.k_proj.weight)
        for linear in small:
            nn.init.xavier_normal_(linear.weight, gain=gain)


@register_model("deepnorm")
class DeepNormTransformer(TransformerModel):
    """Fairseq's Transformer with ``LayerNorm(alpha x + block(x))``, its weights started at beta.

    Source: Wang et al. 2022, DeepNet (arXiv 2203.00555), fig. 2, encoder-decoder.
    """

    def __init__(self, args: Any, encoder: Any, decoder: Any) -> None:
        super().__init__(args, encoder, decoder)
        n, m = len(encoder.layers), len(decoder.layers)
        both = (n**4 * m) ** (1 / 16)
        set_up(encoder.layers, weight=0.81 * both, gain=0.87 / both)
        set_up(decoder.layers, weight=(3 * m) ** (1 / 4), gain=(12 * m) ** (-1 / 4))


@register_model_architecture("deepnorm", "deepnorm_iwslt_d64")
def deepnorm_iwslt_d64(args: Any) -> None:
    """The twin's sizes."""
    for name, value in flags_of("iwslt_d64").items():
        setattr(args, name, getattr(args, name, value))
    base_architecture(args)
