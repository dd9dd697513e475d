"""The Euclidean twins: fairseq's Transformer in the sizes of the hyperbolic architectures.

``euclidean_SIZE`` normalizes after each block, as the Transformer's paper does;
``euclidean_postnorm_SIZE`` normalizes the embeddings too, and ``euclidean_prenorm_SIZE`` normalizes
before each block. All compute what fairseq's ``transformer`` computes from the same parameters,
whose names :meth:`EuclideanParts.current_names` translates. fairseq's names for its own sizes are
registered too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.layers.euclidean import (
    ACTIVATIONS,
    AddedPositions,
    DotProductAttention,
    DotProductLogits,
    FeedForward,
    ScaledEmbedding,
)
from hyptrans.layers.positions import FIRST_POSITION
from hyptrans.seq2seq.architectures import Architecture, register, register_sizes, with_defaults
from hyptrans.seq2seq.config import SkeletonConfig
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.sizes import SIZES, Side, flags_of_sides
from hyptrans.seq2seq.version import KEY, this_version
from hyptrans.support.options import option

PRENORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
TWINS: Mapping[str, dict[str, Any]] = {
    "euclidean": {},
    "euclidean_postnorm": {"layernorm_embedding": True},
    "euclidean_prenorm": PRENORM,
}
"""The options of fairseq's Transformer that each twin sets, whatever its size."""


_BIG = flags_of_sides(1024, 4096, 6, 16)
OF_FAIRSEQ: Mapping[str, dict[str, Any]] = {
    "transformer": {},
    "transformer_tiny": flags_of_sides(64, 64, 2, 2),
    "transformer_iwslt_de_en": flags_of_sides(512, 1024, 6, 4),
    "transformer_wmt_en_de": {},
    "transformer_vaswani_wmt_en_de_big": _BIG | {"dropout": 0.3},
    "transformer_vaswani_wmt_en_fr_big": _BIG | {"dropout": 0.1},
    "transformer_wmt_en_de_big": _BIG | {"dropout": 0.3, "attention_dropout": 0.1},
    "transformer_wmt_en_de_big_t2t": _BIG
    | PRENORM
    | {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1},
}
"""fairseq's own names for its Transformer, with the options that each sets."""


@dataclass
class TransformerConfig(SkeletonConfig):
    """Options of fairseq's Transformer, with its defaults."""

    encoder_learned_pos: bool = option(
        False, "learned positions in the encoder (default: as --arch has it)", in_formula=True
    )
    decoder_learned_pos: bool = option(
        False, "learned positions in the decoder (default: as --arch has it)", in_formula=True
    )
    decoder_attention_heads: int = option(
        8, "number of decoder attention heads", in_formula=True, of_size=True
    )
    encoder_normalize_before: bool = option(
        False, "normalize before each encoder block, not after it", in_formula=True
    )
    decoder_normalize_before: bool = option(
        False, "normalize before each decoder block, not after it", in_formula=True
    )
    decoder_output_dim: Optional[int] = option(
        None, "width before the output (default: the decoder's)"
    )
    activation_fn: str = option(
        "relu", "activation between the feed-forward maps", choices=[*ACTIVATIONS], in_formula=True
    )
    activation_dropout: float = option(0.0, "dropout probability after the activation")
    relu_dropout: float = option(0.0, "older name of --activation-dropout")
    encoder_layerdrop: float = option(0.0, "probability of leaving out an encoder layer")
    decoder_layerdrop: float = option(0.0, "probability of leaving out a decoder layer")
    layernorm_embedding: bool = option(
        False, "normalize the sum of embeddings and positions", in_formula=True
    )
    no_scale_embedding: bool = option(
        False, "do not multiply embeddings by sqrt(width)", in_formula=True
    )
    no_token_positional_embeddings: bool = option(False, "no positions", in_formula=True)
    no_decoder_final_norm: bool = option(
        False, "no norm after the last decoder layer", in_formula=True
    )


INERT = {
    **dict.fromkeys(("adaptive_softmax_dropout", "adaptive_softmax_factor"), 0.0),
    **dict.fromkeys(("quant_noise_pq_block_size", "min_params_to_wrap", "base_sublayers"), 0),
    "decoder_input_dim": 0,
    **dict.fromkeys(("checkpoint_activations", "offload_activations"), False),
    **dict.fromkeys(("base_shuffle", "tie_adaptive_proj", "export"), False),
}
"""fairseq's options that have no effect here, each with a value of its type."""
ABSENT = {
    **dict.fromkeys(("adaptive_input", "tie_adaptive_weights", "char_inputs"), False),
    **dict.fromkeys(("no_cross_attention", "cross_self_attention"), False),
    **dict.fromkeys(("quant_noise_pq", "quant_noise_scalar", "base_layers"), 0),
    **dict.fromkeys(("adaptive_softmax_cutoff", "encoder_layers_to_keep"), None),
    **dict.fromkeys(("decoder_layers_to_keep",), None),
    **dict.fromkeys(("encoder_xformers_att_config", "decoder_xformers_att_config"), None),
    **dict.fromkeys(("encoder_embed_path", "decoder_embed_path"), None),
}
"""fairseq's options that this package lacks, each with the only value that it accepts."""

NAMES = (
    (r"self_attn_layer_norm", "attention.residual.norm"),
    (r"encoder_attn_layer_norm", "cross_attention.residual.norm"),
    (r"final_layer_norm", "feed_forward.residual.norm"),
    (r"self_attn\.q_proj", "attention.qkv"),
    (r"encoder_attn\.k_proj", "cross_attention.kv"),
    (r"encoder_attn\.q_proj", "cross_attention.q"),
    (r"self_attn", "attention"),
    (r"encoder_attn", "cross_attention"),
    (r"out_proj\b", "out"),
    (r"fc1\b", "feed_forward.expand"),
    (r"fc2\b", "feed_forward.contract"),
    (r"embed_positions\.weight", "embed_positions.vectors"),
    (r"layernorm_embedding", "embed_positions.norm"),
    (r"coder\.layer_norm", "coder.final_norm"),
    (r"project_out_dim", "logits.project"),
    (r"output_projection", "logits"),
)
"""Patterns in fairseq's parameter names and their replacements, applied in this order."""
_JOINED = {"self_attn.q_proj": "qkv", "encoder_attn.k_proj": "kv"}
"""The first of several maps that are one map here, with the letters of all the joined maps."""
UNSET = "_float_tensor"
"""A number in fairseq's files that fairseq never sets: what the memory held, perhaps NaN."""
_LEFT_OUT = re.compile(
    rf"(encoder|decoder)\.(version|embed_positions\.(weights|{UNSET}))|"
    r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)|"
    r".*\.(self_attn\.[kv]|encoder_attn\.v)_proj\.(weight|bias)"
)
"""Names in fairseq's files to skip: versions, sinusoids, copies, and maps joined to others."""


class EuclideanParts(Parts):
    """The Transformer's parts; states are vectors."""

    rotates = True

    def __init__(self, cfg: Any, side: Side) -> None:
        super().__init__(cfg, side)
        self.norm_first = getattr(cfg, f"{side.name}_normalize_before")

    def embedding(self, num_embeddings: int, padding_idx: int) -> ScaledEmbedding:
        scale = 1.0 if self.cfg.no_scale_embedding else None
        return self.make_embedding(ScaledEmbedding, num_embeddings, padding_idx, scale=scale)

    def positions(self, *, before: Any) -> AddedPositions:
        none = self.cfg.no_token_positional_embeddings
        options = {"norm": self.cfg.layernorm_embedding, "none": none}
        return self.make_positions(AddedPositions, **options)

    def attention(self, role: Role, *, before: Any) -> DotProductAttention:
        return self.make_attention(DotProductAttention, role, norm_first=self.norm_first)

    def feed_forward(self, *, before: Any) -> FeedForward:
        return self.make_feed_forward(
            FeedForward,
            activation=self.cfg.activation_fn,
            activation_dropout=self.cfg.activation_dropout or self.cfg.relu_dropout,
            norm_first=self.norm_first,
        )

    def final_norm(self) -> nn.Module | None:
        left_out = self.side.name == "decoder" and self.cfg.no_decoder_final_norm
        return nn.LayerNorm(self.side.width) if self.norm_first and not left_out else None

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> DotProductLogits:
        inner = self.cfg.decoder_output_dim
        return DotProductLogits(num_embeddings, self.side.width, table=tied, inner_width=inner)

    def space(self, part: Any) -> Space:
        return Space("euclidean")

    @classmethod
    def current_names(cls, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Translate fairseq's parameter names, in files without a version, to ours."""
        if not any(".self_attn." in name for name in parameters):
            return dict(parameters)
        found: dict[str, Tensor] = {KEY: this_version()}
        for name, tensor in parameters.items():
            for first, maps in _JOINED.items():
                if f"{first}." in name:
                    others = [name.replace(f"{maps[0]}_proj", f"{one}_proj") for one in maps]
                    if all(other in parameters for other in others):
                        tensor = torch.cat([parameters[other] for other in others])
            if name.endswith("embed_positions.weight"):
                tensor = tensor[FIRST_POSITION:]  # nothing reads earlier rows
            if not _LEFT_OUT.fullmatch(name):
                for pattern, ours in NAMES:
                    name = re.sub(pattern, ours, name)
                found[name] = tensor
        return found


for _name, _defaults in OF_FAIRSEQ.items():
    _config = with_defaults(TransformerConfig, _name, _defaults)
    register(Architecture(_name, _config, EuclideanParts))
for _name, _defaults in TWINS.items():
    _config = with_defaults(TransformerConfig, _name, _defaults)
    register_sizes(_name, _config, SIZES)(EuclideanParts)
