"""The Euclidean twins: fairseq's Transformer in the sizes of the hyperbolic architectures.

``euclidean_SIZE`` normalizes after each block, as the Transformer's paper does,
``euclidean_prenorm_SIZE`` before it. fairseq trains them with its own model; here is the
configuration of :class:`hyptrans.seq2seq.transformer.Transformer`, which computes the same of the
same parameters. The names that fairseq has for sizes of its own are known, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from hyptrans.seq2seq.architectures import Architecture, register, with_defaults
from hyptrans.seq2seq.config import SkeletonConfig
from hyptrans.seq2seq.sizes import SIZES, flags_of
from hyptrans.seq2seq.transformer import Transformer
from hyptrans.seq2seq.transformer_layers import ACTIVATIONS
from hyptrans.support.options import option

PRENORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
TWINS: dict[str, dict[str, Any]] = {
    **{f"euclidean_{size}": flags_of(size) for size in SIZES},
    **{f"euclidean_prenorm_{size}": flags_of(size) | PRENORM for size in SIZES},
}
"""What each twin sets of the options of fairseq's Transformer."""


def _sizes(width: int, inner: int, layers: int, heads: int) -> dict[str, Any]:
    sides = ("encoder", "decoder")
    sizes = {"embed_dim": width, "ffn_embed_dim": inner, "layers": layers, "attention_heads": heads}
    return {f"{side}_{name}": value for side in sides for name, value in sizes.items()}


_BIG = _sizes(1024, 4096, 6, 16)
OF_FAIRSEQ: Mapping[str, dict[str, Any]] = {
    "transformer": {},
    "transformer_tiny": _sizes(64, 64, 2, 2),
    "transformer_iwslt_de_en": _sizes(512, 1024, 6, 4),
    "transformer_wmt_en_de": {},
    "transformer_vaswani_wmt_en_de_big": _BIG | {"dropout": 0.3},
    "transformer_vaswani_wmt_en_fr_big": _BIG | {"dropout": 0.1},
    "transformer_wmt_en_de_big": _BIG | {"dropout": 0.3, "attention_dropout": 0.1},
    "transformer_wmt_en_de_big_t2t": _BIG
    | PRENORM
    | {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1},
}
"""Architectures that fairseq itself has of its Transformer, by what they set."""


@dataclass
class TransformerConfig(SkeletonConfig):
    """Options of fairseq's Transformer, with its defaults."""

    encoder_learned_pos: bool = False
    decoder_learned_pos: bool = False
    decoder_attention_heads: int = 8
    encoder_normalize_before: bool = option(False, "normalize before each encoder block")
    decoder_normalize_before: bool = option(False, "normalize before each decoder block")
    decoder_output_dim: Optional[int] = option(None, "width before the output, else the decoder's")
    activation_fn: str = option("relu", "between the feed-forward maps", choices=[*ACTIVATIONS])
    activation_dropout: float = option(0.0, "dropout probability after the activation")
    layernorm_embedding: bool = option(False, "normalize the embeddings")
    no_scale_embedding: bool = option(False, "embeddings are not multiplied by sqrt(width)")
    no_token_positional_embeddings: bool = option(False, "no positions")
    no_decoder_final_norm: bool = option(False, "no norm after the last decoder layer")


INERT = {
    **dict.fromkeys(("encoder_layerdrop", "decoder_layerdrop", "adaptive_softmax_dropout"), 0.0),
    **dict.fromkeys(("adaptive_softmax_factor", "relu_dropout"), 0.0),
    **dict.fromkeys(("quant_noise_pq_block_size", "min_params_to_wrap", "base_sublayers"), 0),
    "decoder_input_dim": 0,
    **dict.fromkeys(("checkpoint_activations", "offload_activations"), False),
    **dict.fromkeys(("base_shuffle", "tie_adaptive_proj", "export"), False),
}
"""Options of fairseq's that change nothing of what a trained model computes, with their kind."""
ABSENT = {
    **dict.fromkeys(("adaptive_input", "tie_adaptive_weights", "char_inputs"), False),
    **dict.fromkeys(("no_cross_attention", "cross_self_attention"), False),
    **dict.fromkeys(("quant_noise_pq", "quant_noise_scalar", "base_layers"), 0),
    **dict.fromkeys(("adaptive_softmax_cutoff", "encoder_layers_to_keep"), None),
    **dict.fromkeys(("decoder_layers_to_keep",), None),
    **dict.fromkeys(("encoder_xformers_att_config", "decoder_xformers_att_config"), None),
    **dict.fromkeys(("encoder_embed_path", "decoder_embed_path"), None),
}
"""Options of fairseq's that are not computed here, with the only value that is taken."""

for _name, _defaults in {**OF_FAIRSEQ, **TWINS}.items():
    register(
        Architecture(_name, with_defaults(TransformerConfig, _name, _defaults), Transformer.of)
    )
