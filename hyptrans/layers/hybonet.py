"""HyboNet: the fully Lorentz layers of Chen et al. (2022).

Every layer takes and gives points of the hyperboloid; the formulas are in
:mod:`hyptrans.geometry.lorentz`, where an equation is changed first.

With the same weights every layer gives what the authors' code gives. What differs from that code is
ours, for these reasons:

* One dropout mask for queries, keys and values, where the code draws three: the three maps are one
  matrix product.
* Fresh query, key and value maps are zero in the column that reads the time. The code zeroes one
  column for each head, but their input is a single point, whose other columns are space.
* The attention's output layer has a bias, as all layers have; the code leaves it out.
* Dropout on the input of the position layer is ``--dropout``; the code fixes it at 0.1.
* Output points start at random; the code starts them as a copy of the target embedding, which
  ``--share-decoder-input-output-embed`` keeps for good.
* A zero space part gives the origin, where the code divides by zero.
"""

import torch
from torch import Tensor, nn

from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.kernels.points import points
from hyptrans.layers.attention import Map
from hyptrans.layers.lorentz.mix import PointAttention
from hyptrans.layers.lorentz.residual import LorentzResidual, Residual
from hyptrans.layers.positions import position_vectors

INITIAL_WEIGHT_BOUND = 0.02
INITIAL_LOG_SCALE = 2.3
"""Times of a fresh layer reach up to exp(2.3) + 1.1 = 11.07 (reference code of HyboNet)."""


class LorentzLinear(nn.Module):
    """Linear map between hyperboloids: a matrix product, then a point made from its numbers.

    ``z = W dropout(h(x)) + b``, of which :func:`hyptrans.geometry.lorentz.points` makes a point;
    ``s`` is its scale of times. :class:`LorentzResidual` says how a residual enters.

    Multi-head attention needs several points at a time. ``merged_heads`` says that the input is so
    many points side by side. ``split_heads`` cuts the output into so many points of equal width,
    and ``projections`` stacks so many maps (queries, keys, values) into one matrix product; each
    has a scale ``s`` of its own, shared by its heads. Such layers are called by :meth:`heads`.

    Shapes: ``[..., in_width]`` -> ``[..., out_width]``, time included in both.
    Source: HyboNet eq. 3 and 9.

    Args:
        in_width: numbers of the input, time coordinates included.
        out_width: numbers of the output of one projection, time coordinates included.
        c: the hyperboloids have curvature ``-c``.
        relu: apply ReLU to the input before dropout.
        dropout: probability of zeroing an input number while training.
        residual: the form in which a residual enters.
        merged_heads: number of points that the input is made of.
        split_heads: number of points to cut the output into.
        projections: number of maps in one product; needs ``split_heads``.

    Raises:
        ValueError: a width does not give so many points of two coordinates or more, projections
            without ``split_heads``, or an unknown form of residual.
    """

    def __init__(
        self,
        in_width: int,
        out_width: int,
        *,
        c: float = 1.0,
        relu: bool = False,
        dropout: float = 0.0,
        residual: Residual = "full",
        merged_heads: int = 1,
        split_heads: int | None = None,
        projections: int = 1,
    ) -> None:
        super().__init__()
        _check_widths(in_width, merged_heads, "in_width")
        _check_widths(out_width, split_heads or 1, "out_width")
        if projections > 1 and split_heads is None:
            raise ValueError(f"projections={projections} needs split_heads; give 1 for one head")
        self.c, self.relu, self.dropout = c, relu, dropout
        self.residual = LorentzResidual(residual, c=c)
        self.in_width, self.out_width = in_width, out_width
        self.merged_heads, self.split_heads, self.projections = (
            merged_heads,
            split_heads,
            projections,
        )
        self.weight = nn.Parameter(torch.empty(projections * out_width, in_width))
        self.bias = nn.Parameter(torch.empty(projections * out_width))
        self.log_scale = nn.Parameter(torch.empty(projections))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """U(-0.02, 0.02), but zero in the columns that read a time."""
        nn.init.uniform_(self.weight, -INITIAL_WEIGHT_BOUND, INITIAL_WEIGHT_BOUND)
        with torch.no_grad():
            self.weight[:, :: self.in_width // self.merged_heads] = 0
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.log_scale, INITIAL_LOG_SCALE)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        if residual is not None:
            made: Tensor = self.residual(self._z(x), residual, self.log_scale)
            return made
        (points,) = self.heads(x)
        return points.flatten(-2)

    def _z(self, x: Tensor) -> Tensor:
        """``z``, all projections side by side."""
        x = relu_dropout(x, self.dropout, relu=self.relu, training=self.training)
        return products.linear(x.to(self.weight.dtype), self.weight, self.bias)

    def heads(self, x: Tensor, *, query_factor: Tensor | None = None) -> tuple[Tensor, ...]:
        """The points of all heads: for each projection ``[..., split_heads, width of a head]``.

        ``query_factor``: the first projection gives queries, see
        :func:`hyptrans.kernels.points.points`.
        """
        z, heads = self._z(x), self.split_heads or 1
        return points(
            z.view(
                *z.shape[:-1], self.projections, heads, z.size(-1) // (self.projections * heads)
            ),
            self.log_scale,
            c=self.c,
            query_factor=query_factor,
        )

    def extra_repr(self) -> str:
        return f"{self.in_width}, {self.out_width}, c={self.c}, dropout={self.dropout}"


def _check_widths(width: int, points: int, name: str) -> None:
    if width % points:
        raise ValueError(f"{name}={width} is not divisible by {points} heads")
    if width // points < 2:
        raise ValueError(
            f"{name}={width} gives points of {width // points} coordinates in {points} head(s); "
            "a point needs time and at least one space coordinate"
        )


class LorentzPositions(nn.Module):
    """Position encoding: a Lorentz linear layer with the position's vector as its residual.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.
    Source: HyboNet sec. 3.3.

    Args:
        width: numbers of a point, time included.
        max_positions: positions from 0 to one less than this can be encoded.
        learned: vectors are learned, starting at N(0, 0.02^2); else sinusoidal.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the input of the linear layer.
        residual: how a position's vector enters: ``full`` or ``space``, as it is no point.

    Raises:
        ValueError: another form.
    """

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        learned: bool = True,
        c: float = 1.0,
        dropout: float = 0.0,
        residual: Residual = "full",
    ) -> None:
        super().__init__()
        if residual not in ("full", "space"):
            raise ValueError(f"positions enter as 'full' or 'space', got {residual!r}")
        self.vectors = position_vectors(max_positions, width, learned=learned)
        self.linear = LorentzLinear(width, width, c=c, dropout=dropout, residual=residual)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.linear(x, self.vectors(positions))


class LorentzAttention(PointAttention):
    """Lorentz attention: weights from squared Lorentzian distances, centroids of the values.

    The weights are ``softmax(-d2(q, k) / tau + beta)`` with learned ``tau``, which starts at
    ``sqrt(width)``; :func:`lorentz_mix` computes them.

    Source: HyboNet eq. 4 and 5; residual eq. 7. ``attention_dropout`` acts on the inputs of the
    query, key and value maps, as in the authors' code, and not on the weights.

    Args:
        width: numbers of a point of the input and the output, time included.
        heads: number of heads; each has ``width / heads`` numbers, one of them its time.
        memory_width: numbers of a point of the memory; given for cross-attention only.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the input of the output layer.
        attention_dropout: probability on the inputs of the query, key and value maps.
        residual: see :class:`LorentzResidual`.
        half_precision: attend in the half precision of autocast or of the weights, if any, and not
            in float32; a few queries at a time, as in decoding, do so in float32 all the same.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or a head has no space coordinate.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        memory_width: int | None = None,
        c: float = 1.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        residual: Residual = "full",
        half_precision: bool = False,
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        self.c, self.half_precision = c, half_precision

        def projection(in_width: int, projections: int) -> LorentzLinear:
            return LorentzLinear(
                in_width,
                width,
                c=c,
                dropout=attention_dropout,
                split_heads=heads,
                projections=projections,
            )

        self.add_maps(projection, memory_width)
        self.tau = nn.Parameter(torch.tensor(width**0.5))
        # softmax drops it, so it has no gradient; kept as a place for the reference code's weights
        self.register_buffer("beta", torch.zeros(()))
        self.out = LorentzLinear(
            width, width, c=c, dropout=dropout, residual=residual, merged_heads=heads
        )

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        factor = 2 * at_least_float32(self.tau).reciprocal() if "q" in name else None
        points = getattr(self, name).heads(x, query_factor=factor)
        return tuple(one.transpose(1, 2) for one in points)  # [B, H, T, d]

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.out(heads.transpose(1, 2).flatten(2), x)


class LorentzFeedForward(nn.Module):
    """Two Lorentz linear layers; the second has ReLU on its input and the block's residual.

    Shapes: ``[..., width]`` -> ``[..., width]``. Source: HyboNet's authors' code, residual eq. 7.

    Args:
        width: numbers of a point of the input and the output, time included.
        inner_width: numbers of a point between the two layers, time included.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the inputs of both layers (after ReLU in the second).
        residual: see :class:`LorentzResidual`.
    """

    def __init__(
        self,
        width: int,
        inner_width: int,
        *,
        c: float = 1.0,
        dropout: float = 0.0,
        residual: Residual = "full",
    ) -> None:
        super().__init__()
        self.expand = LorentzLinear(width, inner_width, c=c, dropout=dropout)
        self.contract = LorentzLinear(
            inner_width, width, c=c, relu=True, dropout=dropout, residual=residual
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.expand(x), x)
