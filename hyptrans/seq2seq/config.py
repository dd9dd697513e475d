"""The options that architectures share."""

from dataclasses import dataclass
from typing import Any, Optional

from hyptrans.layers.lorentz import STORAGES
from hyptrans.support.options import option

REMOVED_OPTIONS = {"attention_precision": "float32"}
"""Removed options that configurations of earlier versions may still carry, each with the value that
matches what the code now does."""
CURVATURES = (1e-6, 1e6)
"""Lowest and highest curvature of a configuration, far beyond the values in use."""


@dataclass
class SkeletonConfig:
    """Options of every architecture; names and meanings are those of fairseq's transformer."""

    dropout: float = option(0.1, "dropout probability", of_size=True)
    attention_dropout: float = option(
        0.0, "dropout probability for attention weights", of_size=True
    )
    encoder_embed_dim: int = option(
        512,
        "width of the encoder's states, a time coordinate included where there is one",
        of_size=True,
    )
    encoder_ffn_embed_dim: int = option(
        2048, "width inside the encoder's feed-forward blocks", of_size=True
    )
    encoder_layers: int = option(6, "number of encoder layers", of_size=True)
    encoder_attention_heads: int = option(
        8, "number of encoder attention heads", in_formula=True, of_size=True
    )
    encoder_learned_pos: bool = option(
        True, "learned positions in the encoder (default), else sinusoidal", in_formula=True
    )
    decoder_embed_dim: Optional[int] = option(
        None, "width of the decoder's states (default: as --arch has it, else the encoder's)"
    )
    decoder_ffn_embed_dim: Optional[int] = option(
        None,
        "width inside the decoder's feed-forward blocks (default: as --arch has it, "
        "else the encoder's)",
    )
    decoder_layers: int = option(6, "number of decoder layers", of_size=True)
    decoder_attention_heads: Optional[int] = option(
        None,
        "number of decoder attention heads (default: as --arch has it, else the encoder's)",
        in_formula=True,
    )
    decoder_learned_pos: bool = option(
        True, "learned positions in the decoder (default), else sinusoidal", in_formula=True
    )
    rotary_positions: bool = option(
        False,
        "no position vectors; self-attention rotates queries and keys by position (RoPE)",
        in_formula=True,
    )
    share_decoder_input_output_embed: bool = option(
        False, "share decoder input and output embeddings", in_formula=True
    )
    share_all_embeddings: bool = option(
        False,
        "share encoder, decoder and output embeddings "
        "(needs a joined dictionary and one embed dim)",
        in_formula=True,
    )
    max_source_positions: int = option(1024, "longest source, in tokens")
    max_target_positions: int = option(1024, "longest target, in tokens")


@dataclass
class HyperbolicConfig(SkeletonConfig):
    """Options of the architectures whose states are points of hyperbolic space."""

    curvature: float = option(
        1.0, "c > 0: the space has curvature -c (unit: 1 / length^2)", in_formula=True
    )
    embedding_storage: str = option(
        "space",
        "space: space coordinates are ordinary parameters, for any optimizer; "
        "manifold: points are manifold parameters, as in the paper, for --optimizer "
        "riemannian_adam",
        choices=STORAGES,
    )


def dropout_of_inputs() -> Any:
    """Return the option ``--attention-dropout`` for architectures that do not drop weights."""
    return option(
        0.0,
        "dropout probability on the inputs of the query, key and value maps "
        "(unlike fairseq's: not on the weights)",
        of_size=True,
    )


@dataclass
class LorentzConfig(HyperbolicConfig):
    """Options of the architectures with attention in the Lorentz model."""

    attention_dropout: float = dropout_of_inputs()


def check_curvature_option(cfg: Any) -> None:
    """Check that a model with a configuration's curvature, if it has one, could be loaded again.

    Raises:
        ValueError: the curvature is out of bounds.
    """
    least, most = CURVATURES
    curvature = getattr(cfg, "curvature", 1.0)
    if not least <= curvature <= most:
        raise ValueError(
            f"--curvature must be above 0, from {least:g} to {most:g}, got {curvature}"
        )
