"""Output layer: logits from distances to a point per token."""

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, without_autocast
from hyptrans.layers.embedding import LorentzEmbedding


def distance_logits(x: Tensor, points: Tensor, bias: Tensor, *, c: lorentz.Curvature) -> Tensor:
    """``-d2(x, e_v) + b_v``, as one matrix product: ``2/c + 2 <x, e_v> + b_v``.

    The bias is one more coordinate of the points, which meets a one: added by itself it would cost
    two more passes over the logits.

    Shapes: x ``[..., D]``, points ``[V, D]``, bias ``[V]`` -> ``[..., V]``.
    Source: HyboNet sec. 3.4.
    """
    with without_autocast(x):
        x = at_least_float32(x)
        signed = torch.cat([-2 * x[..., :1], 2 * x[..., 1:], torch.ones_like(x[..., :1])], dim=-1)
        offset = (at_least_float32(bias) + 2 / c).unsqueeze(-1)
        return signed @ torch.cat([points, offset], dim=-1).t()


class LorentzLogits(nn.Module):
    """Negative squared Lorentzian distances to the points of a table, plus a bias a token.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``. Source: HyboNet sec. 3.4.

    Args:
        table: the points ``e_v``; share the embedding of the input here to tie them.
    """

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.weight.size(0)))

    def forward(self, x: Tensor) -> Tensor:
        return distance_logits(x, self.table.points(), self.bias, c=self.table.c)
