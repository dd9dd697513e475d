"""What Lorentz models share: token points, attention by distances, and logits from distances."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.checks import check_choice, check_curvature
from hyptrans.geometry.precision import at_least_float32, full_precision
from hyptrans.kernels import products
from hyptrans.kernels.lorentz import normalize
from hyptrans.layers.attention import Map, State, fused_attention, heads_of

Storage = Literal["space", "manifold"]
STORAGES: tuple[Storage, ...] = get_args(Storage)


class LorentzEmbedding(nn.Module):
    """A table of one point per token.

    ``storage="space"`` stores the space coordinates as an ordinary parameter, N(0, 1 / width), and
    computes the time on use: any optimizer, precision or averaging works. ``"manifold"`` stores
    whole points as a geoopt manifold parameter, as in the HyboNet paper; it needs Riemannian Adam.

    Shapes: tokens ``[...]`` -> ``[..., width]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: coordinates of a point, time included.
        padding_idx: row that starts as the origin and gets no gradient from the lookup.
        c: the hyperboloid has curvature ``-c``.
        storage: how to store the points.

    Raises:
        ValueError: ``c`` is not above 0, or ``storage`` is unknown.
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        *,
        padding_idx: int | None = None,
        c: float = 1.0,
        storage: Storage = "space",
    ) -> None:
        super().__init__()
        check_curvature(c)
        check_choice("storage", storage, STORAGES)
        self.width, self.padding_idx, self.c, self.storage = width, padding_idx, c, storage
        if storage == "space":
            self.weight = nn.Parameter(torch.empty(num_embeddings, width - 1))
            nn.init.normal_(self.weight, std=width**-0.5)
            padding = torch.zeros(width - 1)
        else:
            # geoopt is slow to import, and other models do not need it
            from hyptrans.layers.manifold import ManifoldParameter, StableLorentz

            manifold = StableLorentz(1 / c)
            empty = torch.empty(num_embeddings, width)
            self.weight = ManifoldParameter(empty, manifold=manifold)
            with torch.no_grad():
                # geoopt draws points at distance 1 from the origin whatever the curvature
                unit = StableLorentz().random_normal(num_embeddings, width)
                self.weight.copy_(unit / c**0.5)
            padding = lorentz.origin(width, c=c)
        if padding_idx is not None:
            with torch.no_grad():
                self.weight[padding_idx] = padding

    def forward(self, tokens: Tensor) -> Tensor:
        return self._lifted(F.embedding(tokens, self.weight, self.padding_idx))

    def points(self, c: lorentz.CurvatureLike | None = None) -> Tensor:
        """Return all points of the table, ``[num_embeddings, width]``.

        With ``c``, return points of curvature ``-c``: lift stored space coordinates there, or move
        manifold points there from their own curvature, which keeps the order of distances.
        """
        return self._lifted(self.weight, c)

    def _lifted(self, rows: Tensor, c: lorentz.CurvatureLike | None = None) -> Tensor:
        # recomputing the time keeps a point stored in half precision on the hyperboloid
        if self.storage == "space":
            return lorentz.lift(rows, c=self.c if c is None else c)
        if c is None:
            return lorentz.lift(rows[..., 1:], c=self.c)
        return lorentz.lift(at_least_float32(rows[..., 1:]) * (self.c / c) ** 0.5, c=c)


def scaled_query(query: Tensor, tau: Tensor) -> Tensor:
    """Return ``(-q_t, q_s) 2 / tau``: dot products of this query with keys are the scores.

    The weights are ``softmax(-d2(q, k) / tau + beta)``. As ``-d2 = 2/c + 2 <q, k>`` and softmax
    drops constants such as ``beta``, these are the weights of ordinary attention between this query
    and ``k``. All code that computes or shows weights uses this function.

    Shapes: query ``[..., d]``, tau ``[]`` -> ``[..., d]``. Source: HyboNet eq. 5.
    """
    return query * (lorentz.time_signs(query, 2.0) / at_least_float32(tau))


def lorentz_heads(points: Tensor, name: Map, tau: Tensor) -> tuple[Tensor, ...]:
    """Return the heads of the maps ``name``; queries are scaled by :func:`scaled_query`.

    Shapes: points ``[B, T, maps, H, d]``, tau ``[]`` -> for each map ``[B, H, T, d]``.
    """
    first, *others = points.unbind(2)
    return heads_of([scaled_query(first, tau) if "q" in name else first, *others])


def mixed_centroids(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    c: lorentz.CurvatureLike,
    allowed: Tensor | None,
    is_causal: bool,
) -> Tensor:
    """Return the centroids of the values, weighted by the softmax of dot products.

    As a centroid does not depend on the scale of its weights, it is the normalized output of
    ordinary attention, so torch's fused attention computes it exactly. The query comes from
    :func:`scaled_query`. Source: HyboNet eq. 4.

    Shapes: those of :meth:`hyptrans.layers.attention.Attention.mix`.
    """
    with full_precision(query):
        mixed = fused_attention(query, key, value, allowed=allowed, is_causal=is_causal, scale=1.0)
        # fused attention writes [B, T, H, d]: normalizing in this layout merges heads for free
        return normalize(mixed.transpose(1, 2), c=c).transpose(1, 2)


class LorentzLogits(nn.Module):
    """Negative squared Lorentzian distances to the points of a table, plus a bias per token.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``. Source: HyboNet's authors' code.

    Args:
        table: the points ``e_v``; pass the input embedding to tie the two.
    """

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.weight.size(0)))

    @property
    def curvature(self) -> lorentz.CurvatureLike:
        """Return the curvature at which to compare points and tokens."""
        return self.table.c

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Return logits; ``state`` keeps the tokens' points from one decoding step to the next."""
        features, table = self.factors(x, state)
        return products.exact_linear(features, table)

    def factors(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """Return ``[..., K]`` and ``[num_embeddings, K]``; their float32 product is the logits.

        These are ``-d2(x, e_v) + b_v = 2/c + 2 <x, e_v> + b_v``. The bias and ``2/c`` are one more
        coordinate of a token, by a 1 in the features: adding them separately would cost two more
        passes over the logits.
        """
        x = at_least_float32(x)
        time, space = x[..., :1], x[..., 1:]
        features = torch.cat([-2 * time, 2 * space, torch.ones_like(time)], dim=-1)
        if state is None:
            return features, self._table()
        if state.kept is None:
            state.kept = self._table()
        return features, state.kept

    def _table(self) -> Tensor:
        c = self.curvature
        # in this order, which is that of the sum of the gradients of c
        points, added = self.table.points(c), at_least_float32(self.bias) + 2 / c
        return torch.cat([points, added.unsqueeze(-1)], dim=-1)
