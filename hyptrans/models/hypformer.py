"""Hypformer, Yang et al. (2024), as an encoder-decoder: linear attention, learned curvatures."""

from dataclasses import dataclass
from typing import Any, Optional

import torch

from hyptrans.geometry.space import Space
from hyptrans.layers.curvature import Curvature, kept_curvatures
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
"""Gain of Xavier's uniform initialization. At 0.7 an untrained 6+6 model tells words and positions
apart as its Euclidean twin does. One minus the mean cosine of untrained encoder states (d = 64,
random words) is 0.73 in the twin, and 0.78 at gain 0.7, 0.44 at 1, 0.20 at sqrt(2) (paper's code).
If weights that read the time start at random too, states hardly differ: 0.001 at 0.7, 0.000 at
sqrt(2)."""
DEFAULT_FOCUS_POWER = 2.0
ATTENTIONS = ("linear", "softmax")
ATTENTION = (
    "linear: focused linear attention, linear in the length; "
    "softmax: Lorentz attention, quadratic in the length"
)


@dataclass
class HypformerConfig(LorentzConfig):
    """Options of Hypformer."""

    hypformer_learn_curvature: bool = option(
        True, "every block learns a curvature, starting at --curvature (default); else fixed"
    )
    hypformer_attention: str = option("linear", ATTENTION, in_formula=True, choices=ATTENTIONS)
    hypformer_focus_power: Optional[float] = option(
        None,
        "exponent of linear attention's features; above 1 sharpens attention "
        f"(default: {DEFAULT_FOCUS_POWER:g})",
        in_formula=True,
    )


@register_sizes("hypformer", HypformerConfig, ("tiny", "iwslt_d64", "base"))
class HypformerParts(Parts):
    """A chain of blocks; each has its own curvature and reads that of the block before.

    Raises:
        ValueError: an option is out of range or contradicts another; the message names its flag.
    """

    around_forward = staticmethod(kept_curvatures)

    @property
    def rotates(self) -> bool:
        """Whether the attention takes rotary positions: only with softmax."""
        return bool(self.cfg.hypformer_attention == "softmax")

    def __init__(self, cfg: Any, side: Side) -> None:
        super().__init__(cfg, side)
        power, softmax = cfg.hypformer_focus_power, cfg.hypformer_attention == "softmax"
        if power is not None and softmax:
            raise ValueError(
                "--hypformer-focus-power acts in --hypformer-attention linear only: "
                "leave one of them out"
            )
        if power is not None and not power > 0:
            raise ValueError(f"--hypformer-focus-power must be above 0, got {power}")
        if softmax and side.width == side.heads:
            raise ValueError(
                "--hypformer-attention softmax needs heads of width 2 or more, time included, "
                f"got --{side.name}-attention-heads {side.heads} for --{side.name}-embed-dim "
                f"{side.width}"
            )

    def _curvature(self) -> Curvature:
        return Curvature(self.cfg.curvature, learned=self.cfg.hypformer_learn_curvature)

    def _block_options(self, before: Any) -> dict[str, Any]:
        """Return a block's options: its input's curvature, its own, and the gain of its maps."""
        own = self._curvature()
        return {"input_curvature": before.curvature, "curvature": own, "gain": HTC_GAIN}

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
