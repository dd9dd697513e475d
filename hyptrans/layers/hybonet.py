"""HyboNet: the fully Lorentz layers of Chen et al. (2022).

Every layer takes and gives points of the hyperboloid; the formulas are in
:mod:`hyptrans.geometry.lorentz`, where an equation is changed first, but for the weights of
attention, which are :func:`scaled_query`.

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

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, full_precision
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.kernels.lorentz import from_linear, normalize
from hyptrans.layers.attention import Attention, Map, one_mask
from hyptrans.layers.checks import check_choice, check_curvature
from hyptrans.layers.positions import position_vectors

Residual = Literal["full", "space", "logit", "sphere", "centroid"]
RESIDUALS: tuple[Residual, ...] = get_args(Residual)

SATURATED = 40.0
"""The sigmoid of this and more is 1, in float64 too."""
INITIAL_WEIGHT_BOUND = 0.02
INITIAL_LOG_SCALE = 2.3
"""Times of a fresh layer reach up to exp(2.3) + 1.1 = 11.07 (reference code of HyboNet)."""


class LorentzResidual(nn.Module):
    """The point made of a layer's numbers ``z`` and of a residual ``r``, a point of its width.

    With the time ``T(a) = sigmoid(a) exp(s) + 1/sqrt(c) + 0.1`` of
    :func:`hyptrans.geometry.lorentz.from_linear`:

    * ``full``: the point of ``z + r``. HyboNet's code. As ``r_t`` is far above 0, ``T(z_t + r_t)``
      is nearly its upper bound for every state: the layer normalizes onto a sphere.
    * ``space``: the point of ``(z_t, z_s + r_s)``. HyboNet eq. 7, the paper's own.
    * ``logit``: time ``T(z_t + T^-1(r_t))``, so that ``z_t = 0`` keeps the residual's time where
      this layer can give it; space as above.
    * ``sphere``: time ``T(infinity)``, the same for every state; space as above.
    * ``centroid``: the Lorentz centroid of ``r`` and of the point of ``z``, weighted by 1 and a
      learned ``exp(w)``, which starts at 1. LResNet (He et al. 2024, arXiv 2412.14695).

    ``r`` of the first two may be any vector.

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
        r, timed = self._with_argument(r, log_scale), self.form != "space"
        return from_linear(z, log_scale, c=c, residual=r, residual_time=timed).flatten(-3)

    def _with_argument(self, r: Tensor, log_scale: Tensor) -> Tensor:
        """The residual with what is added to ``z_t`` in place of its time."""
        if self.form == "logit":
            argument = lorentz.time_argument(r[..., :1], log_scale, c=self.c)
        elif self.form == "sphere":
            argument = torch.full_like(r[..., :1], SATURATED)
        else:
            return r
        return torch.cat([argument, r[..., 1:]], dim=-1)

    def extra_repr(self) -> str:
        return self.form


class LorentzLinear(nn.Module):
    """Linear map between hyperboloids: a matrix product, then a point made from its numbers.

    ``z = W dropout(h(x)) + b``, of which :func:`hyptrans.geometry.lorentz.from_linear` makes a
    point; ``s`` is its scale of times. :class:`LorentzResidual` says how a residual enters.

    Multi-head attention needs several points at a time. ``merged_heads`` says that the input is so
    many points side by side. ``split_heads`` cuts the output into so many points of equal width,
    and ``projections`` stacks so many maps (queries, keys, values) into one matrix product; each
    has a scale ``s`` of its own, shared by its heads.

    Shapes: ``[..., in_width]`` -> ``[..., out_width]``, time included in both; with ``split_heads``
    -> ``[..., projections, split_heads, out_width / split_heads]``.
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
            without ``split_heads``, an unknown form of residual, or ``c`` is not above 0.
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
        self.in_width, self.out_width = in_width, out_width
        self.merged_heads, self.split_heads = merged_heads, split_heads
        self.shape = projections, split_heads or 1, out_width // (split_heads or 1)
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
        x = relu_dropout(x, self.dropout, relu=self.relu, training=self.training)
        weight = self.weight
        z = products.linear(x.to(weight.dtype), weight, self.bias)
        z = z.view(*z.shape[:-1], *self.shape)
        if residual is not None:
            made: Tensor = self.residual(z, residual, self.log_scale)
            return made
        made = from_linear(z, self.log_scale, c=self.c)
        return made.flatten(-3) if self.split_heads is None else made

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


def scaled_query(query: Tensor, tau: Tensor) -> Tensor:
    """HyboNet eq. 5: a query whose dot products with keys are the scores, ``(-q_t, q_s) 2 / tau``.

    The weights are ``softmax(-d2(q, k) / tau + beta)``. As ``-d2 = 2/c + 2 <q, k>`` and softmax
    drops constants, ``beta`` among them, they are those of ordinary attention between this query
    and ``k``. All that computes or shows weights gets them through this function.

    Shapes: query ``[..., d]``, tau ``[]`` -> ``[..., d]``.
    """
    return query * (lorentz.time_signs(query, 2.0) / at_least_float32(tau))


def mixed_centroids(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    c: lorentz.CurvatureLike,
    allowed: Tensor | None,
    is_causal: bool,
) -> Tensor:
    """Centroids of the values, weighted by the softmax of dot products: HyboNet eq. 4.

    As a centroid does not depend on the scale of its weights, it is the output of ordinary
    attention, normalized: torch's fused attention computes it exactly. The query is that of
    :func:`scaled_query`.

    Shapes: as :meth:`hyptrans.layers.attention.Attention.mix`.
    """
    allowed, is_causal = one_mask(key, allowed, is_causal)
    with full_precision(query):
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, is_causal=is_causal, scale=1.0
        )
        # fused attention writes [B, T, H, d]: normalized as it lies, heads are merged for free
        return normalize(mixed.transpose(1, 2), c=c).transpose(1, 2)


class LorentzAttention(Attention):
    """Lorentz attention: weights from squared Lorentzian distances, centroids of the values.

    The weights are those of :func:`scaled_query`, with a learned ``tau`` that starts at
    ``sqrt(width)``. The output layer adds the input, the block's residual, by itself: no ``x +``
    belongs around this layer.

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
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        self.c = c

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
        first, *rest = getattr(self, name)(x).unbind(2)
        first = scaled_query(first, self.tau) if "q" in name else first
        return tuple(one.transpose(1, 2) for one in (first, *rest))

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
