"""HyboNet in pre-norm form: blocks read points of one size, the stream's radius is free."""

from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.kernels.hyperboloid import lift
from hyptrans.layers.decoding_state import State
from hyptrans.layers.hybonet import LorentzAttention, LorentzLinear
from hyptrans.layers.lorentz.embedding import LorentzEmbedding
from hyptrans.layers.lorentz.logits import LorentzLogits
from hyptrans.layers.lorentz.residual import LorentzResidual
from hyptrans.models.hybonet import HyboNetConfig, HyboNetParts
from hyptrans.seq2seq.architectures import register_sizes

EPSILON = 1e-6
"""Added to a mean square before dividing by its root."""


class PointNorm(nn.Module):
    """The point above ``gain * x_s / rms(x_s)``.

    Shapes: ``[..., width]`` -> ``[..., width]``, points.
    """

    def __init__(self, width: int, *, c: float) -> None:
        super().__init__()
        self.c = c
        self.gain = nn.Parameter(torch.ones(width - 1))

    def forward(self, x: Tensor) -> Tensor:
        space = x[..., 1:]
        mean_square = space.square().mean(-1, keepdim=True)
        return lift(self.gain * space * (mean_square + EPSILON).rsqrt(), c=self.c)


class SpaceSum(LorentzResidual):
    """The point above ``r_s + z_s``: what is added may take the stream anywhere.

    Args:
        layer: whose residual it becomes; its scale of times then scales nothing.
    """

    def __init__(self, layer: LorentzLinear) -> None:
        super().__init__(c=layer.c)
        layer.log_scale.requires_grad_(False)
        layer.residual = self

    def forward(self, z: Tensor, r: Tensor, log_scale: Tensor) -> Tensor:
        return lift(r[..., 1:] + z[..., 1:], c=self.c)


class PreNormAttention(LorentzAttention):
    """HyboNet's attention of normalized points, whose result is added to the stream."""

    def __init__(self, width: int, heads: int, *, c: float, **options: Any) -> None:
        super().__init__(width, heads, c=c, **options)
        self.norm = PointNorm(width, c=c)
        memory_width = options.get("memory_width")
        self.memory_norm = None if memory_width is None else PointNorm(memory_width, c=c)
        SpaceSum(self.out)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().project(self.norm(x))

    def query(self, x: Tensor) -> Tensor:
        return super().query(self.norm(x))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        normalized = memory if self.memory_norm is None else self.memory_norm(memory)
        return super().keys_and_values(normalized)


class PreNormFeedForward(nn.Module):
    """HyboNet's feed-forward block of normalized points, whose result is added to the stream.

    Shapes: ``[..., width]`` -> ``[..., width]``.
    """

    def __init__(self, width: int, inner_width: int, *, c: float, dropout: float) -> None:
        super().__init__()
        self.norm = PointNorm(width, c=c)
        self.expand = LorentzLinear(width, inner_width, c=c, dropout=dropout)
        self.contract = LorentzLinear(inner_width, width, c=c, relu=True, dropout=dropout)
        SpaceSum(self.contract)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.expand(self.norm(x)), x)


class PreNormLogits(LorentzLogits):
    """HyboNet's logits of normalized points."""

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__(table)
        self.norm = PointNorm(table.width, c=table.c)

    def factors(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        return super().factors(self.norm(x), state)


@register_sizes("lorentz_prenorm", HyboNetConfig, ("tiny", "iwslt_d64"))
class PreNormParts(HyboNetParts):
    """HyboNet's in pre-norm form."""

    attention_type = PreNormAttention

    def feed_forward(self, *, before: Any) -> PreNormFeedForward:
        return PreNormFeedForward(
            self.side.width, self.side.ffn_width, c=self.cfg.curvature, dropout=self.cfg.dropout
        )

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> PreNormLogits:
        return PreNormLogits(tied or self.embedding(num_embeddings, padding_idx))
