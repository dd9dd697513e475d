"""Hypformer, Yang et al. (2024), as an encoder-decoder: linear attention, learned curvatures."""

from dataclasses import dataclass
from typing import Any, Optional

import torch

from hyptrans.geometry.space import Space
from hyptrans.layers.curvature import Curvature
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
from hyptrans.layers.lorentz import LorentzEmbedding
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.seq2seq.config import LorentzConfig
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.sizes import Side
from hyptrans.support.options import option

HTC_GAIN = 0.7
"""Times Xavier's uniform distribution; a fresh 6+6 model then tells words and positions apart as
its Euclidean twin does. One minus the mean cosine between fresh encoder states, d = 64, random
words: twin 0.73; gain 0.7 0.78, 1 0.44, sqrt(2) (the paper's code) 0.20; and with random weights
also where a map reads the time, 0.001 at 0.7 and 0.000 at sqrt(2): all states are one vector."""
DEFAULT_FOCUS_POWER = 2.0
ATTENTIONS = ("linear", "softmax")
ATTENTION = (
    "linear: focused linear attention, time and memory grow as the length; "
    "softmax: Lorentz attention, as their square"
)


@dataclass
class HypformerConfig(LorentzConfig):
    """Options of Hypformer."""

    hypformer_learn_curvature: bool = option(
        True, "every block learns a curvature, starting at --curvature (default); else fixed"
    )
    hypformer_attention: str = option(
        "linear",
        ATTENTION,
        in_formula=True,
        choices=ATTENTIONS,
    )
    hypformer_focus_power: Optional[float] = option(
        None,
        "linear attention's features are raised to this power; above 1 sharpens "
        f"(default: {DEFAULT_FOCUS_POWER:g})",
        in_formula=True,
    )


@register_sizes("hypformer", HypformerConfig, ("tiny", "iwslt_d64", "base"))
class HypformerParts(Parts):
    """A chain of blocks, each of which reads the curvature of the one before and has its own."""

    def __init__(self, cfg: Any, side: Side) -> None:
        super().__init__(cfg, side)
        _check(cfg, side)

    def _curvature(self) -> Curvature:
        return Curvature(self.cfg.curvature, learned=self.cfg.hypformer_learn_curvature)

    def _block_options(self, before: Any) -> dict[str, Any]:
        """Options of every block: the curvature of its input, its own, and the gain of its maps."""
        curvatures = {"input_curvature": before.curvature, "curvature": self._curvature()}
        return {**curvatures, "gain": HTC_GAIN}

    def embedding(self, num_embeddings: int, padding_idx: int) -> HypformerEmbedding:
        options = {"curvature": self._curvature(), "storage": self.cfg.embedding_storage}
        return self.make_embedding(HypformerEmbedding, num_embeddings, padding_idx, **options)

    def positions(self, *, before: Any) -> HypformerPositions:
        return self.make_positions(HypformerPositions, **self._block_options(before))

    def attention(self, role: Role, *, before: Any) -> HypformerAttention:
        memory: Any = role.memory
        options = {**self._block_options(before), "memory_curvature": memory and memory.curvature}
        if self.cfg.hypformer_attention == "softmax":
            return self.make_attention(SoftmaxAttention, role, **options)
        power = self.cfg.hypformer_focus_power
        options["power"] = DEFAULT_FOCUS_POWER if power is None else power
        return self.make_attention(LinearAttention, role, **options)

    def feed_forward(self, *, before: Any) -> HypformerFeedForward:
        return self.make_feed_forward(HypformerFeedForward, **self._block_options(before))

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> HypformerLogits:
        options = {"c": self.cfg.curvature, "storage": self.cfg.embedding_storage}
        table = tied or self.make_embedding(
            LorentzEmbedding, num_embeddings, padding_idx, **options
        )
        return HypformerLogits(table, input_curvature=before.curvature)

    def space(self, part: Any) -> Space:
        return Space("lorentz", torch.as_tensor(part.curvature()).item())


def _check(cfg: Any, side: Side) -> None:
    """Refuse options that do not go together.

    Raises:
        ValueError: names the flag.
    """
    power, softmax = cfg.hypformer_focus_power, cfg.hypformer_attention == "softmax"
    if power is not None:
        if softmax:
            raise ValueError(
                "--hypformer-focus-power acts in --hypformer-attention linear only: "
                "leave one of them out"
            )
        if not power > 0:
            raise ValueError(f"--hypformer-focus-power must be above 0, got {power}")
    if softmax and side.width == side.heads:
        raise ValueError(
            "--hypformer-attention softmax needs heads of width 2 or more, time included, "
            f"got --{side.name}-attention-heads {side.heads} for --{side.name}-embed-dim "
            f"{side.width}"
        )
