"""Output layer: logits from distances to a point per token."""

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import products
from hyptrans.layers.decoding_state import State
from hyptrans.layers.lorentz.embedding import LorentzEmbedding


def distance_table(points: Tensor, bias: Tensor, *, c: lorentz.CurvatureLike) -> Tensor:
    """What :func:`distance_features` meet of the tokens: their points, and ``b_v + 2/c``.

    Shapes: points ``[V, D]``, bias ``[V]`` -> ``[V, D + 1]``.
    """
    return torch.cat([points, (at_least_float32(bias) + 2 / c).unsqueeze(-1)], dim=-1)


def distance_features(x: Tensor) -> Tensor:
    """Numbers whose dot products with a :func:`distance_table` are ``-d2(x, e_v) + b_v``.

    That is ``2/c + 2 <x, e_v> + b_v``. The bias is one more coordinate, which meets a one: added by
    itself it would cost two more passes over the logits.

    Shapes: ``[..., D]`` -> ``[..., D + 1]``. Source: HyboNet's authors' code.
    """
    x = at_least_float32(x)
    time, space = x[..., :1], x[..., 1:]
    return torch.cat([-2 * time, 2 * space, torch.ones_like(time)], dim=-1)


class LorentzLogits(nn.Module):
    """Negative squared Lorentzian distances to the points of a table, plus a bias a token.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``. Source: HyboNet's authors' code.

    Args:
        table: the points ``e_v``; share the embedding of the input here to tie them.
    """

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.weight.size(0)))

    @property
    def curvature(self) -> lorentz.CurvatureLike:
        """Where points and tokens are compared."""
        return self.table.c

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Logits; a ``state`` keeps the tokens' points from one decoding step to the next."""
        features, table = self.factors(x, state)
        return products.exact_linear(features, table)

    def factors(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """``[..., K]`` and ``[num_embeddings, K]``, whose product in float32 the logits are."""
        if state is None:
            return distance_features(x), self._table()
        if state.kept is None:
            state.kept = self._table()
        return distance_features(x), state.kept

    def _table(self) -> Tensor:
        c = self.curvature
        return distance_table(self.table.points(c), self.bias, c=c)
