"""Hypformer, Yang et al. (2024), as an encoder-decoder: linear attention, learned curvatures."""

import argparse
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum

from hyptrans.geometry.space import Space
from hyptrans.layers.curvature import Curvature
from hyptrans.layers.embedding import LorentzEmbedding
from hyptrans.layers.hypformer import (
    HypformerEmbedding,
    HypformerFeedForward,
    HypformerLogits,
    HypformerPositions,
)
from hyptrans.layers.hypformer_attention import (
    HypformerAttention,
    LinearAttention,
    SoftmaxAttention,
)
from hyptrans.models._config import LorentzConfig, Side, register_sizes
from hyptrans.models._skeleton import HypTransformer, Parts

HTC_GAIN = 0.7
"""Times Xavier's uniform distribution; a fresh 6+6 model then tells words and positions apart as
its Euclidean twin does. One minus the mean cosine between fresh encoder states, d = 64, random
words: twin 0.73; gain 0.7 0.78, 1 0.44, sqrt(2) (the paper's code) 0.20; and with random weights
also where a map reads the time, 0.001 at 0.7 and 0.000 at sqrt(2): all states are one vector."""
DEFAULT_FOCUS_POWER = 2.0


@dataclass
class HypformerConfig(LorentzConfig):
    """Options of Hypformer."""

    learn_curvature: bool = field(
        default=True,
        metadata={"help": "every block learns a curvature, starting at --curvature"},
    )
    attention: ChoiceEnum(["linear", "softmax"]) = field(  # type: ignore[valid-type]
        default="linear",
        metadata={
            "help": "linear: focused linear attention, time and memory grow as the length; "
            "softmax: Lorentz attention, as their square"
        },
    )
    focus_power: Optional[float] = field(
        default=None,
        metadata={
            "help": "linear attention's features are raised to this power; above 1 sharpens "
            f"(default: {DEFAULT_FOCUS_POWER:g})"
        },
    )


class HypformerParts(Parts):
    """A chain of blocks: each takes the curvature of the one before and creates its own."""

    source: Optional["HypformerParts"]
    last: Curvature
    """Of the block asked for last."""

    def __init__(self, cfg: Any, side: Side, source: Any = None) -> None:
        super().__init__(cfg, side, source)
        _check(cfg, side)
        # with one embedding for both sides the decoder's positions follow the encoder's embedding
        self.embedded: Optional[Curvature] = source and source.embedded

    def _next(self) -> dict[str, Curvature]:
        """Curvatures of the next block."""
        source, self.last = self.last, self._curvature()
        return {"source": source, "curvature": self.last}

    def _curvature(self) -> Curvature:
        return Curvature(self.cfg.curvature, learned=self.cfg.learn_curvature)

    def embedding(self, num_embeddings: int, padding_idx: int) -> HypformerEmbedding:
        self.embedded = self._curvature()
        return HypformerEmbedding(
            num_embeddings,
            self.side.width,
            padding_idx=padding_idx,
            curvature=self.embedded,
            storage=self.cfg.lorentz_embedding,
        )

    def positions(self) -> HypformerPositions:
        assert self.embedded is not None, "an embedding comes before the positions"
        self.last = self.embedded
        return HypformerPositions(
            self.side.width,
            self.side.max_positions,
            learned=self.side.learned_positions,
            gain=HTC_GAIN,
            dropout=self.cfg.dropout,
            **self._next(),
        )

    def self_attention(self, *, causal: bool) -> HypformerAttention:
        return self._attention(causal=causal)

    def cross_attention(self) -> HypformerAttention:
        assert self.source is not None, "cross-attention is the decoder's"
        return self._attention(memory_width=self.source.side.width, memory_source=self.source.last)

    def _attention(self, **role: Any) -> HypformerAttention:
        options = {
            "gain": HTC_GAIN,
            "dropout": self.cfg.dropout,
            "attention_dropout": self.cfg.attention_dropout,
            **self._next(),
            **role,
        }
        if self.cfg.attention == "softmax":
            half = self.cfg.attention_precision == "half"
            return SoftmaxAttention(
                self.side.width, self.side.heads, half_precision=half, **options
            )
        power = self.cfg.focus_power
        return LinearAttention(
            self.side.width,
            self.side.heads,
            power=DEFAULT_FOCUS_POWER if power is None else power,
            **options,
        )

    def feed_forward(self) -> HypformerFeedForward:
        return HypformerFeedForward(
            self.side.width,
            self.side.ffn_width,
            gain=HTC_GAIN,
            dropout=self.cfg.dropout,
            **self._next(),
        )

    def logits(self, num_embeddings: int, padding_idx: int, tied: Any) -> HypformerLogits:
        table = tied or LorentzEmbedding(
            num_embeddings,
            self.side.width,
            padding_idx=padding_idx,
            c=self.cfg.curvature,
            storage=self.cfg.lorentz_embedding,
        )
        return HypformerLogits(table, source=self.last)

    def space(self, part: Any) -> Space:
        return Space("lorentz", torch.as_tensor(part.curvature()).item())


def _check(cfg: Any, side: Side) -> None:
    """Refuse options that do not go together.

    Raises:
        ValueError: names the flag.
    """
    if not cfg.curvature > 0:
        raise ValueError(
            f"--curvature must be above 0 (the space has minus that curvature), got {cfg.curvature}"
        )
    if cfg.focus_power is not None:
        if cfg.attention != "linear":
            raise ValueError("--focus-power acts in --attention linear only: leave one of them out")
        if not cfg.focus_power > 0:
            raise ValueError(f"--focus-power must be above 0, got {cfg.focus_power}")
    if cfg.attention_precision == "half" and cfg.attention != "softmax":
        raise ValueError(
            "--attention-precision half acts in --attention softmax only: leave it out, or add that"
        )
    if cfg.attention == "softmax" and side.width == side.heads:
        raise ValueError(
            f"--attention softmax needs at least two numbers a head (one is its time), got "
            f"--{side.name}-attention-heads {side.heads} for --{side.name}-embed-dim {side.width}"
        )


@register_sizes("hypformer", HypformerConfig, ("tiny", "iwslt_d64", "base"))
class Hypformer(HypTransformer):
    """Hyperbolic Transformer with linear attention and a learned curvature for every block."""

    parts = HypformerParts

    @classmethod
    def add_args(cls, parser: Any) -> None:
        # fairseq would make a field that is true by default into a flag that turns it off
        parser.add_argument(
            "--learn-curvature",
            action=argparse.BooleanOptionalAction,
            default=argparse.SUPPRESS,
            help="every block learns a curvature, starting at --curvature (default); else fixed",
        )
        super().add_args(parser)
