"""What `lorentz_shell` is made of, with norms before blocks: the radius of states is free."""

import math
from typing import Any

from torch import Tensor, nn

from hyptrans.geometry.lorentz import lift
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.attention import Map, State
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits
from hyptrans.layers.positions import position_vectors
from hyptrans.seq2seq.architectures import register_sizes

from .lorentz_shell import (
    INNER_LOG_SCALE,
    Shell,
    ShellAttention,
    ShellConfig,
    ShellFeedForward,
    ShellParts,
)

INITIAL_LENGTH = 0.6
"""Of embeddings, times the root of the width: the shorter, the more do blocks change radii."""


class BeforeBlock(Shell):
    """What a block reads of a point: it, drawn half way to a shell.

    Shapes: ``[..., space + 1]`` -> ``[..., space + 1]``.
    """

    def __init__(self, *, c: float) -> None:
        super().__init__(c=c, log_length=INNER_LOG_SCALE)

    def forward(self, x: Tensor) -> Tensor:
        return self.draw(x[..., 1:])


class FreeSum(nn.Module):
    """The point above ``x_s + dropout(update)``: a block may take a state anywhere.

    Shapes: a point ``[..., space + 1]`` and numbers ``[..., space]`` -> ``[..., space + 1]``.
    """

    def __init__(self, *, c: float, dropout: float) -> None:
        super().__init__()
        self.c, self.dropout = c, dropout

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        update = relu_dropout(update, self.dropout, training=self.training)
        return lift(x[..., 1:] + update, c=self.c)


class FreePositions(nn.Module):
    """The point above a multiple of a token's space part plus its position's vector.

    Shapes: x ``[B, T, space + 1]``, positions ``[B, T]`` (from 0) -> ``[B, T, space + 1]``.
    """

    def __init__(
        self, space: int, max_positions: int, *, learned: bool, c: float, dropout: float
    ) -> None:
        super().__init__()
        self.c, self.dropout = c, dropout
        self.scale = INITIAL_LENGTH * math.sqrt(space)
        self.vectors = position_vectors(max_positions, space, learned=learned)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        moved = self.scale * x[..., 1:] + self.vectors(positions)
        return lift(relu_dropout(moved, self.dropout, training=self.training), c=self.c)


class FreeAttention(ShellAttention):
    """Attention that reads states near a shell, and adds to them as they are."""

    def __init__(self, space: int, heads: int, *, c: float, dropout: float, **options: Any) -> None:
        super().__init__(space, heads, c=c, dropout=dropout, **options)
        self.norm = FreeSum(c=c, dropout=dropout)
        self.before = nn.ModuleDict({name: BeforeBlock(c=c) for name in self.log_lengths})

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        return super().map_heads(name, self.before[name](x))


class FreeFeedForward(ShellFeedForward):
    """The feed-forward block likewise."""

    def __init__(self, space: int, inner: int, *, c: float, dropout: float) -> None:
        super().__init__(space, inner, c=c, dropout=dropout)
        self.expand = nn.Sequential(BeforeBlock(c=c), self.expand)
        self.norm = FreeSum(c=c, dropout=dropout)


class FreeLogits(LorentzLogits):
    """Logits of states near a shell."""

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__(table)
        self.before = BeforeBlock(c=table.c)

    def factors(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        return super().factors(self.before(x), state)


@register_sizes("lorentz_free", ShellConfig, ("tiny", "iwslt_d64"))
class FreeParts(ShellParts):
    """States of ``width`` space coordinates and any length, with the time beside them."""

    positions_type, attention_type = FreePositions, FreeAttention
    feed_forward_type, logits_type = FreeFeedForward, FreeLogits
