"""HVT: the Poincare-ball layers of Fein-Ashley et al. (2024).

Every layer maps points of the ball to points of the ball. Between its maps a layer represents
points by their tangents at the origin, where ``exp_o`` and ``log_o`` of adjacent formulas cancel.

The equations are the paper's, with exceptions that docstrings name: the maps of eq. 8 and 9 have no
factor 2 (as in geoopt); gyromidpoints replace eq. 24, whose sum depends on the order of the points;
eq. 33 uses ``exp(-d)`` in place of ``d``, whose sign contradicts the text; the sum of eq. 26 after
attention is normalized like that of eq. 30 after the feed-forward block. The authors' code differs:
it scores by dot products of tangents and averages values as tangents, its activation is a PReLU
whose slope starts at 1 (the identity), it scales residuals without Mobius operations, keeps the
weight matrices themselves in the ball, confines logits to the unit ball, and adds a margin to the
loss. Nothing here follows that code.
"""

from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.geometry import poincare
from hyptrans.geometry.checks import check_curvature
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.kernels.poincare import add_tangents
from hyptrans.kernels.poincare_residual import norm_residual
from hyptrans.layers.attention import State
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits
from hyptrans.layers.positions import position_vectors

NORM_EPSILON = 1e-5
"""Epsilon of :class:`TangentNorm`: LayerNorm's in torch, for vectors in units of 1/sqrt(width)."""


class MobiusLinear(nn.Module):
    """Mobius linear layer ``W (x)_M x (+) b``, the bias ``b = exp_o(bias)`` being a point.

    Shapes: ``[..., in_width]`` -> ``[..., out_width]``; with ``projections``, that many maps in one
    matrix product -> ``[..., projections, out_width]``. Source: HVT eq. 5 and 7.

    Args:
        in_width: coordinates of an input point.
        out_width: coordinates of an output point.
        c: the ball has curvature ``-c``.
        projections: number of maps, or None for one map without a dimension of its own.
    """

    def __init__(
        self, in_width: int, out_width: int, *, c: float = 1.0, projections: int | None = None
    ) -> None:
        super().__init__()
        check_curvature(c)
        self.c = c
        self.weight = nn.Parameter(torch.empty((projections or 1) * out_width, in_width))
        self.bias = nn.Parameter(torch.zeros(*([projections] if projections else []), out_width))
        for part in self.weight.detach().chunk(projections or 1):
            nn.init.xavier_uniform_(part)

    def forward(self, x: Tensor) -> Tensor:
        tangent = self.tangent(poincare.log_origin(x, c=self.c))
        return poincare.exp_origin(tangent, c=self.c)

    def tangent(self, u: Tensor, *, relu: bool = False) -> Tensor:
        """Map the tangent of the input to that of the output, with ReLU at the end if wanted."""
        return add_tangents(self.product(u), self.bias, c=self.c, relu=relu)

    def product(self, u: Tensor) -> Tensor:
        """Return :meth:`tangent` before the bias.

        As ``W (x)_M x`` is ``exp_o(W log_o(x))``, the matrix multiplies the tangent directly.
        """
        z = products.linear(u.to(self.weight.dtype), self.weight)
        return z.view(*z.shape[:-1], *self.bias.shape)

    def extra_repr(self) -> str:
        return f"weight={tuple(self.weight.shape)}, c={self.c}"


class TangentNorm(nn.Module):
    """Gain and shift of a LayerNorm of tangents, with a gain that starts at ``1 / sqrt(width)``.

    :class:`ScaledResidual` computes the norm together with its sum, by
    :func:`hyptrans.kernels.poincare_residual.plain_norm` or a kernel.

    At gain 1 tangents would have length ``sqrt(width)`` and all points would sit on the clamp. The
    factor ``1 / sqrt(width)`` is not part of the parameters, so an optimizer step changes gain and
    bias by the same share as in a Euclidean Transformer. Source: HVT eq. 11, without its maps.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))


class ScaledResidual(nn.Module):
    """End of a sublayer: ``LayerNorm(x (+) beta (x) O)`` with a learned ``beta`` that starts at 1.

    ``O`` is the output of a :class:`MobiusLinear`, passed as its product and bias.

    Shapes: x (a point) and product ``[..., width]``, bias ``[width]`` -> ``[..., width]``.
    Source: HVT eq. 12, 26 and 30.

    Args:
        width: coordinates of a point.
        c: the ball has curvature ``-c``.
        dropout: probability of zeroing a number of the update's tangent while training.
    """

    def __init__(self, width: int, *, c: float = 1.0, dropout: float = 0.0) -> None:
        super().__init__()
        check_curvature(c)
        self.c, self.dropout = c, dropout
        self.beta = nn.Parameter(torch.ones(()))
        self.norm = TangentNorm(width)

    def forward(self, x: Tensor, product: Tensor, bias: Tensor) -> Tensor:
        return norm_residual(
            x,
            product,
            bias,
            self.beta,
            self.norm.weight,
            self.norm.bias,
            c=self.c,
            epsilon=NORM_EPSILON,
            dropout=self.dropout if self.training else 0.0,
        )


class PoincareFeedForward(nn.Module):
    """Two Mobius linear layers, ReLU in the tangent space between them, scaled residual and norm.

    Shapes: ``[..., width]`` -> ``[..., width]``. Source: HVT eq. 27 to 30.

    Args:
        width: coordinates of an input or output point.
        inner_width: coordinates of a point between the two maps.
        c: the ball has curvature ``-c``.
        dropout: see :class:`ScaledResidual`.
    """

    def __init__(
        self, width: int, inner_width: int, *, c: float = 1.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.c = c
        self.expand = MobiusLinear(width, inner_width, c=c)
        self.contract = MobiusLinear(inner_width, width, c=c)
        self.residual = ScaledResidual(width, c=c, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.expand.tangent(poincare.log_origin(x, c=self.c), relu=True)
        return self.residual(x, self.contract.product(hidden), self.contract.bias)


class PoincareEmbedding(LorentzEmbedding):
    """A table of one point per token; a lookup returns points of the ball.

    The table stores the points' lifts, with one more coordinate: see :class:`LorentzEmbedding`.

    Shapes: tokens ``[...]`` -> ``[..., width]``; :meth:`points` returns lifts.
    """

    def __init__(self, num_embeddings: int, width: int, **options: Any) -> None:
        super().__init__(num_embeddings, width + 1, **options)

    def forward(self, tokens: Tensor) -> Tensor:
        return poincare.from_lorentz(super().forward(tokens), c=self.c)


class PoincarePositions(nn.Module):
    """Position encoding ``x (+) (c_pos (x) E)`` with a learned ``c_pos`` that starts at 1.

    The layer stores position points as tangents; ``c_pos (x) E`` multiplies these by ``c_pos``.
    It divides sinusoids by ``sqrt(width)``, which gives all tangents length 0.71 and puts the
    points 1.41 from the origin; undivided they would lie beyond the clamp.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.
    Source: HVT eq. 13 and 14.

    Args:
        width: coordinates of a point.
        max_positions: the layer encodes positions from 0 to one less than this.
        learned: tangents are learned, starting at N(0, 0.02^2); else sinusoidal.
        c: the ball has curvature ``-c``.
        dropout: probability of zeroing a number of the result's tangent while training.
    """

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        learned: bool = True,
        c: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_curvature(c)
        self.c, self.dropout = c, dropout
        self.vectors = position_vectors(max_positions, width, learned=learned)
        if not learned:
            self.vectors.weight.data *= width**-0.5
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        moves = at_least_float32(self.vectors(positions)) * at_least_float32(self.scale)
        total = add_tangents(poincare.log_origin(x, c=self.c), moves, c=self.c)
        total = relu_dropout(total, self.dropout, training=self.training)
        return poincare.exp_origin(total, c=self.c)


class PoincareLogits(LorentzLogits):
    """The distance logits of :class:`LorentzLogits` for lifted points of the ball.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.
    """

    def factors(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        return super().factors(poincare.to_lorentz(x, c=self.table.c), state)
