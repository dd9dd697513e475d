"""The sizes of an encoder or decoder, and the named sizes."""

from dataclasses import dataclass
from typing import Any

SIDES = ("encoder", "decoder")
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "ffn": 512, "layers": 2, "heads": 4, "dropout": (0.1, 0.0)},
    "iwslt_d64": {"width": 64, "ffn": 256, "layers": 6, "heads": 4, "dropout": (0.0, 0.1)},
    "wmt_d64": {"width": 64, "ffn": 256, "layers": 6, "heads": 4, "dropout": (0.1, 0.0)},
    "wmt_d128": {"width": 128, "ffn": 512, "layers": 6, "heads": 8, "dropout": (0.1, 0.0)},
    "wmt_d256": {"width": 256, "ffn": 1024, "layers": 6, "heads": 8, "dropout": (0.1, 0.0)},
    "base": {"width": 512, "ffn": 2048, "layers": 6, "heads": 8, "dropout": (0.1, 0.0)},
    "big": {"width": 1024, "ffn": 4096, "layers": 6, "heads": 16, "dropout": (0.3, 0.0)},
}
"""Sizes of the named architectures, from the HyboNet paper's table of settings; tiny and big come
from HAN's, big's dropout from the Transformer's own paper. An architecture comes in the sizes that
it registers."""


def flags_of(size: str) -> dict[str, Any]:
    """Return the configuration fields, named after fairseq's flags, that a named size sets."""
    values = SIZES[size]
    dropout, attention_dropout = values["dropout"]
    return {
        "dropout": dropout,
        "attention_dropout": attention_dropout,
        **flags_of_sides(values["width"], values["ffn"], values["layers"], values["heads"]),
        **{f"{side}_learned_pos": True for side in SIDES},
    }


def flags_of_sides(width: int, ffn: int, layers: int, heads: int) -> dict[str, Any]:
    """Return the configuration fields that give encoder and decoder the same sizes."""
    sizes = {"embed_dim": width, "ffn_embed_dim": ffn, "layers": layers, "attention_heads": heads}
    return {f"{side}_{name}": size for side in SIDES for name, size in sizes.items()}


@dataclass(frozen=True)
class Side:
    """The sizes of the encoder or of the decoder."""

    name: str
    width: int
    ffn_width: int
    layers: int
    heads: int
    learned_positions: bool
    max_positions: int
    layerdrop: float = 0.0


def side_of(cfg: Any, name: str) -> Side:
    """Return the sizes of one side of a configuration; the decoder's default to the encoder's."""

    def size(field_name: str) -> Any:
        value = getattr(cfg, f"{name}_{field_name}")
        return getattr(cfg, f"encoder_{field_name}") if value is None else value

    longest = cfg.max_source_positions if name == "encoder" else cfg.max_target_positions
    return Side(
        name=name,
        width=size("embed_dim"),
        ffn_width=size("ffn_embed_dim"),
        layers=size("layers"),
        heads=size("attention_heads"),
        learned_positions=size("learned_pos"),
        max_positions=longest,
        layerdrop=getattr(cfg, f"{name}_layerdrop", 0.0),
    )
