"""HyboNet: the fully Lorentz layers of Chen et al. (2022).

Every layer maps points of the hyperboloid to points of the hyperboloid. The formulas are in
:mod:`hyptrans.geometry.lorentz`, the place to change an equation first, except for the attention
weights, which come from :func:`hyptrans.layers.lorentz.scaled_query`.

With the same weights every layer gives the same results as the authors' code. These differences
from that code are deliberate:

* Queries, keys and values share one dropout mask, because their maps are one matrix product; the
  code draws three masks.
* Fresh query, key and value maps are zero in the column that reads the time. The code zeroes one
  column for each head, but their input is a single point, whose other columns are space.
* The output layer of attention has a bias, as all layers have; the code has none there.
* Dropout on the input of the position layer is ``--dropout``; the code fixes it at 0.1.
* Output points start at random; the code starts them as a copy of the target embedding, and
  ``--share-decoder-input-output-embed`` keeps them equal to it.
* A zero space part gives the origin; the code divides by zero there.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.checks import check_choice, check_curvature
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.kernels.lorentz import from_linear, normalize
from hyptrans.layers.attention import Attention, Map
from hyptrans.layers.lorentz import lorentz_heads, mixed_centroids
from hyptrans.layers.positions import position_vectors

Residual = Literal["full", "space", "logit", "sphere", "centroid"]
RESIDUALS: tuple[Residual, ...] = get_args(Residual)

SATURATED = 40.0
"""From this value on, the sigmoid is 1, in float64 too."""
INITIAL_WEIGHT_BOUND = 0.02
INITIAL_LOG_SCALE = 2.3
"""Times of a fresh layer are at most exp(2.3) + 1.1 = 11.07 (HyboNet's reference code)."""


class LorentzResidual(nn.Module):
    """Combine a layer's numbers ``z`` and a residual ``r``, a point of the same width, to a point.

    The forms use the time ``T(a) = sigmoid(a) exp(s) + 1/sqrt(c) + 0.1`` of
    :func:`hyptrans.geometry.lorentz.from_linear`:

    * ``full``: the point of ``z + r``. HyboNet's code. As ``r_t`` is far above 0, ``T(z_t + r_t)``
      is nearly its upper bound for every state: the layer normalizes onto a sphere.
    * ``space``: the point of ``(z_t, z_s + r_s)``. HyboNet eq. 7, as in the paper.
    * ``logit``: time ``T(z_t + T^-1(r_t))``, so ``z_t = 0`` keeps the residual's time if this
      layer can reach it; space as above.
    * ``sphere``: time ``T(infinity)``, the same for every state; space as above.
    * ``centroid``: the Lorentz centroid of ``r`` with weight 1 and the point of ``z`` with a
      learned weight ``exp(w)``, which starts at 1. LResNet (He et al. 2024, arXiv 2412.14695).

    In the first two forms ``r`` may be any vector.

    Shapes: z ``[..., 1, 1, D]``, r ``[..., D]``, log_scale ``[1]`` -> ``[..., D]``.

    Args:
        form: one of the above.
        c: the hyperboloid has curvature ``-c``.

    Raises:
        ValueError: an unknown form, or ``c`` is not above 0.
    """

    def __init__(self, form: Residual = "full", *, c: float = 1.0) -> None:
        super().__init__()
        check_curvature(c)
        check_choice("residual", form, RESIDUALS)
        self.form, self.c = form, c
        self.log_weight = nn.Parameter(torch.zeros(())) if form == "centroid" else None

    def forward(self, z: Tensor, r: Tensor, log_scale: Tensor) -> Tensor:
        c = self.c
        if self.log_weight is not None:
            weight = at_least_float32(self.log_weight).exp()
            own = from_linear(z, log_scale, c=c).flatten(-3)
            return normalize(r + weight * own, c=c)
        # in these two forms the number to add to z_t replaces the residual's time
        if self.form == "logit":
            argument = lorentz.time_argument(r[..., :1], log_scale, c=c)
            r = torch.cat([argument, r[..., 1:]], dim=-1)
        elif self.form == "sphere":
            r = torch.cat([torch.full_like(r[..., :1], SATURATED), r[..., 1:]], dim=-1)
        timed = self.form != "space"
        return from_linear(z, log_scale, c=c, residual=r, residual_time=timed).flatten(-3)

    def extra_repr(self) -> str:
        return self.form


class LorentzLinear(nn.Module):
    """Linear map between hyperboloids: a matrix product, then a point from its numbers.

    :func:`hyptrans.geometry.lorentz.from_linear` turns ``z = W dropout(h(x)) + b`` into a point;
    ``s`` is its scale of times. :class:`LorentzResidual` adds a residual.

    In multi-head attention each of the ``projections`` (queries, keys, values) has its own scale
    ``s``, shared by its heads.

    Shapes: ``[..., in_width]`` -> ``[..., out_width]``, time included in both; with ``split_heads``
    -> ``[..., projections, split_heads, out_width / split_heads]``.
    Source: HyboNet eq. 3 and 9.

    Args:
        in_width: coordinates of the input, times included.
        out_width: coordinates of one projection's output, times included.
        c: the hyperboloids have curvature ``-c``.
        relu: apply ReLU to the input before dropout.
        dropout: probability of zeroing an input number while training.
        residual: form of the :class:`LorentzResidual`.
        merged_heads: number of points side by side in the input.
        split_heads: number of points of equal width to cut the output into.
        projections: number of maps in one product; needs ``split_heads``.

    Raises:
        ValueError: a width is not divisible by its number of points or leaves them fewer than two
            coordinates, projections lack ``split_heads``, the residual is unknown, or ``c`` is not
            above 0.
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
        check_curvature(c)
        _check_widths(in_width, merged_heads, "in_width")
        _check_widths(out_width, split_heads or 1, "out_width")
        if projections > 1 and split_heads is None:
            raise ValueError(f"projections={projections} needs split_heads; give 1 for one head")
        self.c, self.relu, self.dropout = c, relu, dropout
        self.residual = LorentzResidual(residual, c=c)
        self.in_width, self.merged_heads, self.split_heads = in_width, merged_heads, split_heads
        self.shape = projections, split_heads or 1, out_width // (split_heads or 1)
        self.weight = nn.Parameter(torch.empty(projections * out_width, in_width))
        self.bias = nn.Parameter(torch.empty(projections * out_width))
        self.log_scale = nn.Parameter(torch.empty(projections))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights from U(-0.02, 0.02); set the columns that read a time to zero."""
        nn.init.uniform_(self.weight, -INITIAL_WEIGHT_BOUND, INITIAL_WEIGHT_BOUND)
        with torch.no_grad():
            self.weight[:, :: self.in_width // self.merged_heads] = 0
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.log_scale, INITIAL_LOG_SCALE)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        x = relu_dropout(x, self.dropout, relu=self.relu, training=self.training)
        z = products.linear(x.to(self.weight.dtype), self.weight, self.bias)
        z = z.view(*z.shape[:-1], *self.shape)
        if residual is not None:
            return self.residual(z, residual, self.log_scale)
        made = from_linear(z, self.log_scale, c=self.c)
        return made.flatten(-3) if self.split_heads is None else made

    def extra_repr(self) -> str:
        width = self.shape[1] * self.shape[2]
        return f"{self.in_width}, {width}, c={self.c}, dropout={self.dropout}"


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
        width: coordinates of a point, time included.
        max_positions: the layer encodes positions from 0 to one less than this.
        learned: vectors are learned, starting at N(0, 0.02^2); else sinusoidal.
        none: the linear layer has no residual.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the input of the linear layer.
        residual: ``full`` or ``space``, as a position's vector is not a point.

    Raises:
        ValueError: ``residual`` is another form.
    """

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        learned: bool = True,
        none: bool = False,
        c: float = 1.0,
        dropout: float = 0.0,
        residual: Residual = "full",
    ) -> None:
        super().__init__()
        if residual not in ("full", "space"):
            raise ValueError(f"positions enter as 'full' or 'space', got {residual!r}")
        self.vectors = None if none else position_vectors(max_positions, width, learned=learned)
        self.linear = LorentzLinear(width, width, c=c, dropout=dropout, residual=residual)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.linear(x, None if self.vectors is None else self.vectors(positions))


class LorentzAttention(Attention):
    """Lorentz attention: weights from squared Lorentzian distances, centroids of the values.

    The weights come from :func:`hyptrans.layers.lorentz.scaled_query`, with a learned ``tau`` that
    starts at ``sqrt(width)``. The output layer itself adds the input as the block's residual: write
    no ``x +`` around this layer.

    Source: HyboNet eq. 4 and 5; residual eq. 7. ``attention_dropout`` acts on the inputs of the
    query, key and value maps, as in the authors' code, and not on the weights.

    Args:
        width: coordinates of an input or output point, time included.
        heads: number of heads; each has ``width / heads`` coordinates, one of them its time.
        memory_width: coordinates of a point of the memory; for cross-attention only.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the input of the output layer.
        attention_dropout: probability on the inputs of the query, key and value maps.
        residual: see :class:`LorentzResidual`.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or a head has no space coordinate.
    """

    times = 1

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
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        self.c = c
        self.add_maps(
            lambda in_width, maps: LorentzLinear(
                in_width, width, c=c, dropout=attention_dropout, split_heads=heads, projections=maps
            ),
            memory_width,
        )
        self.tau = nn.Parameter(torch.tensor(width**0.5))
        # softmax drops beta, so it has no gradient; it is here to load the reference code's weights
        self.register_buffer("beta", torch.zeros(()))
        self.out = LorentzLinear(
            width, width, c=c, dropout=dropout, residual=residual, merged_heads=heads
        )

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        return lorentz_heads(getattr(self, name)(x), name, self.tau)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        return mixed_centroids(query, key, value, c=self.c, allowed=allowed, is_causal=is_causal)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.out(heads.transpose(1, 2).flatten(2), x)


class LorentzFeedForward(nn.Module):
    """Two Lorentz linear layers; the second has ReLU on its input and the block's residual.

    Shapes: ``[..., width]`` -> ``[..., width]``. Source: HyboNet's authors' code, residual eq. 7.

    Args:
        width: coordinates of an input or output point, time included.
        inner_width: coordinates of a point between the two layers, time included.
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
