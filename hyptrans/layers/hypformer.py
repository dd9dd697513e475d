"""Hypformer (Yang et al. 2024): learned curvatures, the maps between them, and the blocks.

Each block moves points from its input's curvature to its own. Inside a block only space coordinates
exist; the block computes the time, which follows from them, where a linear map reads it and at the
end. So widths inside a block count space coordinates.

The authors' code classifies single inputs. Besides the decoder, these differences are deliberate:

* The code applies ReLU and dropout after the embedding and after the last linear map; we do not.
* Its softmax attention scores ``<q, k> / k`` with a learned ``k``; ours ``-d^2 / tau``, which
  orders keys by their distances.
* Its curvatures are fixed and the same in the whole network; ours follow the paper.
* Its maps start at Xavier's distribution times sqrt(2); the model's ``HTC_GAIN`` says why ours do
  not.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, full_precision
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.curvature import Curvature, Passage
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits, Storage
from hyptrans.layers.positions import position_vectors

NORM_EPSILON = 1e-5
"""Added to the variance in a layer norm, as in fairseq."""


def readjust(numbers: Tensor, *, c: lorentz.CurvatureLike) -> Tensor:
    """Return the point whose space part is ``f(x_s)``: HRC within one curvature.

    The caller applies ``f`` (activation, dropout, concatenation, or several of them) to the space
    coordinates; this function adds the time. Where HRC changes the curvature, ``f`` is a layer
    norm: :class:`CentroidNorm`.

    Shapes: numbers ``[..., D - 1]`` -> ``[..., D]``. Source: Hypformer eq. 13.
    """
    return lorentz.lift(numbers, c=c)


class HTC(nn.Module):
    """Hyperbolic transformation with curvatures: ``y_s = sqrt(c_in / c_out) (W x + b)``.

    ``W`` reads the time coordinate too. Most users need only the space part of the result, as an
    activation, a norm or a sum of heads follows; :func:`readjust` makes it a point.

    Shapes: a point ``[..., in_space + 1]`` -> space coordinates ``[..., projections * out_space]``.
    Source: Hypformer eq. 9.

    Args:
        in_space: space coordinates of the input.
        out_space: space coordinates of the output of one map.
        gain: factor of Xavier's uniform distribution, at which the weights start; those that read
            the time start at 0.
        projections: number of maps (queries, keys, values) in one product.

    Raises:
        ValueError: input or output would have no space coordinate.
    """

    def __init__(self, in_space: int, out_space: int, *, gain: float, projections: int = 1) -> None:
        super().__init__()
        if min(in_space, out_space) < 1:
            raise ValueError(
                "a point needs at least one space coordinate, "
                f"got in_space={in_space}, out_space={out_space}"
            )
        self.weight = nn.Parameter(torch.empty(projections * out_space, in_space + 1))
        self.bias = nn.Parameter(torch.zeros(projections * out_space))
        bound = gain * math.sqrt(6 / (in_space + out_space))
        nn.init.uniform_(self.weight, -bound, bound)
        with torch.no_grad():
            # after a layer norm every time is about sqrt(in_space): with random weights it would
            # add the same large vector to all positions
            self.weight[:, 0] = 0

    def forward(self, x: Tensor, scale: lorentz.CurvatureLike = 1.0) -> Tensor:
        """Map a point; ``scale`` is :func:`scale_between` the curvatures, if they differ."""
        x = x.to(self.weight.dtype)
        return at_least_float32(products.scaled_linear(x, self.weight, self.bias, scale))


class HypformerEmbedding(LorentzEmbedding):
    """Token embeddings at a learned curvature; manifold parameters stay at its starting value.

    Shapes: tokens ``[...]`` -> ``[..., width]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: coordinates of a point, time included.
        curvature: curvature of the output points.
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
        return self._lifted(rows, self.curvature())

    def points(self, c: lorentz.CurvatureLike | None = None) -> Tensor:
        """See :meth:`LorentzEmbedding.points`; without ``c``, use the learned curvature."""
        return super().points(self.curvature() if c is None else c)


class HypformerLogits(LorentzLogits):
    """Distance logits at the curvature of the input points.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.

    Args:
        table: the points of the tokens, used at the input's curvature.
        input_curvature: curvature of the input.
    """

    def __init__(self, table: LorentzEmbedding, *, input_curvature: Curvature) -> None:
        super().__init__(table)
        # in a tuple: registered as a module it would have two names in a checkpoint
        self._before = (input_curvature,)

    @property
    def curvature(self) -> lorentz.CurvatureLike:
        return self._before[0]()


class CentroidNorm(nn.Module):
    """The end of a block: centroid of its input and output with equal weights, then layer norm.

    The input first moves to the block's curvature. A centroid is a scaled sum, and a layer norm
    ignores the scale of its input except for its epsilon, so this layer only sums and does not
    normalize the centroid. If the space coordinates of sum and centroid have variances ``u`` and
    ``v``, the result changes by about ``epsilon / 2 |1 / v - 1 / u|`` of its length: for fresh
    embeddings up to 2e-3 at width 64 and 1.1e-2 at width 512; by much if input and output cancel.

    Shapes: a point ``[..., width]`` and space coordinates ``[..., width - 1]`` -> ``[..., width]``.
    Source: Hypformer eq. 13 and 21; the centroid as in its code.

    Args:
        width: coordinates of a point, time included.
        dropout: probability on the space coordinates of the block's output.
    """

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight = nn.Parameter(torch.ones(width - 1))
        self.bias = nn.Parameter(torch.zeros(width - 1))

    def forward(
        self, x: Tensor, out: Tensor, scale: lorentz.CurvatureLike, *, c: lorentz.CurvatureLike
    ) -> Tensor:
        """Return the block's points; ``scale`` moves its input to its curvature ``-c``."""
        with full_precision(x):
            out = relu_dropout(out, self.dropout, training=self.training)
            out, space = at_least_float32(out), at_least_float32(x[..., 1:])
            if isinstance(scale, Tensor):
                total = torch.addcmul(out, space, scale)
            else:
                total = torch.add(out, space, alpha=scale)
            gain, bias = at_least_float32(self.weight), at_least_float32(self.bias)
            normed = F.layer_norm(total, gain.shape, gain, bias, NORM_EPSILON)
            return lorentz.lift(normed, c=c)


class HypformerPositions(nn.Module):
    """Position encoding: centroid of a point and its position's point, then layer norm.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.
    Source: Hypformer eq. 20 with epsilon 1. There ``p = HTC(x)``, which knows no order; here
    ``p = HTC(vector of the position)``. We add the layer norm that ends all other blocks: fresh
    embeddings have space coordinates of 1/sqrt(width), and the next blocks expect 1.

    Args:
        width: coordinates of a point, time included.
        max_positions: the layer encodes positions from 0 to one less than this.
        curvature: curvature of the result.
        input_curvature: curvature of the input.
        gain: see :class:`HTC`.
        learned: vectors are learned, starting at N(0, 0.02^2); else sinusoidal.
        none: no vectors: only move the points to this curvature and normalize them.
        dropout: probability on the space coordinates of the result.
    """

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        curvature: Curvature,
        input_curvature: Curvature,
        gain: float,
        learned: bool = True,
        none: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.curvature, self.passage = curvature, Passage(input_curvature, curvature)
        self.dropout = dropout
        self.vectors: nn.Module | None = None
        if not none:
            self.vectors = position_vectors(max_positions, width, learned=learned)
            self.htc = HTC(width - 1, width - 1, gain=gain)
        self.norm = CentroidNorm(width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        c = self.curvature()
        if self.vectors is None:
            moves = torch.zeros_like(x[..., 1:])
        else:
            moves = self.htc(self.vectors(positions))
        x = self.norm(x, moves, self.passage(), c=c)
        if not self.dropout or not self.training:
            return x
        return readjust(relu_dropout(x[..., 1:], self.dropout), c=c)


class HypformerFeedForward(nn.Module):
    """HTC, ReLU by HRC, HTC, then the centroid with the input and layer norm.

    Shapes: ``[..., width]`` -> ``[..., width]``. Source: Hypformer eq. 9, 13 and 21.

    Args:
        width: coordinates of an input or output point, time included.
        inner_width: space coordinates between the two maps.
        curvature: curvature of the result.
        input_curvature: curvature of the input.
        gain: see :class:`HTC`.
        dropout: see :class:`CentroidNorm`.
    """

    def __init__(
        self,
        width: int,
        inner_width: int,
        *,
        curvature: Curvature,
        input_curvature: Curvature,
        gain: float,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.curvature, self.passage = curvature, Passage(input_curvature, curvature)
        self.expand = HTC(width - 1, inner_width, gain=gain)
        self.contract = HTC(inner_width, width - 1, gain=gain)
        self.norm = CentroidNorm(width, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        c, scale = self.curvature(), self.passage()
        inner = readjust(F.relu(self.expand(x, scale)), c=c)
        return self.norm(x, self.contract(inner), scale, c=c)
