"""Blocks of Hypformer: each moves points from its input's curvature to one of its own.

Inside a block only space coordinates are kept; the time, which follows from them, is computed where
a linear map reads it and at the block's end. So widths inside a block count space coordinates.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, without_autocast
from hyptrans.kernels.operators import relu_dropout
from hyptrans.layers.curvature import HTC, Curvature, InputCurvature, readjust, scale_between
from hyptrans.layers.embedding import LorentzEmbedding, Storage, position_vectors
from hyptrans.layers.logits import LorentzLogits

NORM_EPSILON = 1e-5
"""Added to the variance in a layer norm, as fairseq's."""


class HypformerEmbedding(LorentzEmbedding):
    """Token embeddings at a learned curvature; points of a manifold stay at its starting value.

    Shapes: tokens ``[...]`` -> ``[..., width]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: numbers of a point, time included.
        curvature: of the points that come out.
        padding_idx: see :class:`LorentzEmbedding`.
        storage: see :class:`LorentzEmbedding`.
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        *,
        curvature: Curvature,
        padding_idx: int | None = None,
        storage: Storage = "space",
    ) -> None:
        super().__init__(
            num_embeddings, width, padding_idx=padding_idx, c=curvature.start, storage=storage
        )
        self.curvature = curvature

    def forward(self, tokens: Tensor) -> Tensor:
        rows = F.embedding(tokens, self.weight, self.padding_idx)
        return self._points(rows, self.curvature())


class HypformerLogits(LorentzLogits):
    """Distance logits at the curvature of the points that come in.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.

    Args:
        table: the points of the tokens, used at the input's curvature.
        source: curvature of the input.
    """

    def __init__(self, table: LorentzEmbedding, *, source: Curvature) -> None:
        super().__init__(table)
        self.source = InputCurvature(source)

    @property
    def curvature(self) -> lorentz.Curvature:
        return self.source()


class ResidualNorm(nn.Module):
    """The end of a block: centroid of its input and output with equal weights, then layer norm.

    The input is first moved to the block's curvature. A layer norm does not see the scale of its
    input, and a centroid is a scaled sum: so the centroid is not normalised, only summed.

    Shapes: a point ``[..., width]`` and space coordinates ``[..., width - 1]`` -> ``[..., width]``.
    Source: Hypformer eq. 13 and 21; the centroid as in its code.

    Args:
        width: numbers of a point, time included.
        dropout: probability on the space coordinates of the block's output.
    """

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight = nn.Parameter(torch.ones(width - 1))
        self.bias = nn.Parameter(torch.zeros(width - 1))

    def forward(
        self, x: Tensor, out: Tensor, *, c_in: lorentz.Curvature, c_out: lorentz.Curvature
    ) -> Tensor:
        with without_autocast(x):
            out = relu_dropout(out, self.dropout, training=self.training)
            both = out + x[..., 1:] * scale_between(c_in, c_out)
            weight, bias = at_least_float32(self.weight), at_least_float32(self.bias)
            normed = F.layer_norm(both, weight.shape, weight, bias, NORM_EPSILON)
            return readjust(normed, c_in=c_out)


class HypformerPositions(nn.Module):
    """Position encoding: the centroid of a point and one made from its position, then layer norm.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.
    Source: Hypformer eq. 20 with epsilon 1; there ``p = HTC(x)``, which knows no order, here
    ``p = HTC(vector of the position)``. The layer norm, as at the end of all other blocks, is ours:
    fresh embeddings have space coordinates of 1/sqrt(width), the blocks after expect 1.

    Args:
        width: numbers of a point, time included.
        max_positions: positions from 0 to one less than this can be encoded.
        curvature: of the result.
        source: curvature of the input.
        gain: see :class:`HTC`.
        learned: vectors are learned, starting at N(0, 0.02^2); else sinusoidal.
        dropout: probability on the space coordinates of the result.
    """

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        curvature: Curvature,
        source: Curvature,
        gain: float,
        learned: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.curvature, self.source, self.dropout = curvature, InputCurvature(source), dropout
        self.vectors = position_vectors(max_positions, width, learned=learned)
        self.htc = HTC(width - 1, width - 1, gain=gain)
        self.norm = ResidualNorm(width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        c = self.curvature()
        p = self.htc(self.vectors(positions), c_in=c)
        x = self.norm(x, p, c_in=self.source(), c_out=c)
        if not self.dropout or not self.training:
            return x
        return readjust(relu_dropout(x[..., 1:], self.dropout), c_in=c)


class HypformerFeedForward(nn.Module):
    """HTC, ReLU by HRC, HTC, then the centroid with the input and layer norm.

    Shapes: ``[..., width]`` -> ``[..., width]``. Source: Hypformer eq. 9, 13 and 21.

    Args:
        width: numbers of a point of the input and the output, time included.
        inner_space: space coordinates between the two maps.
        curvature: of the result.
        source: curvature of the input.
        gain: see :class:`HTC`.
        dropout: see :class:`ResidualNorm`.
    """

    def __init__(
        self,
        width: int,
        inner_space: int,
        *,
        curvature: Curvature,
        source: Curvature,
        gain: float,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.curvature, self.source = curvature, InputCurvature(source)
        self.expand = HTC(width - 1, inner_space, gain=gain)
        self.contract = HTC(inner_space, width - 1, gain=gain)
        self.norm = ResidualNorm(width, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        c_in, c = self.source(), self.curvature()
        inner = F.relu(self.expand(x, c_in=c_in, c_out=c))
        return self.norm(x, self.contract.from_space(inner, c_in=c), c_in=c_in, c_out=c)
