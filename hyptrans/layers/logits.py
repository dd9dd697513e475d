"""Output layer: logits from distances to a point per token."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, without_autocast
from hyptrans.layers.embedding import LorentzEmbedding


class LorentzLogits(nn.Module):
    """``-d2(x, e_v) + b_v``: negative squared Lorentzian distances to the points of a table.

    Computed as one matrix product, ``2/c + 2 <x, e_v> + b_v``.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``. Source: HyboNet sec. 3.4.

    Args:
        table: the points ``e_v``; share the embedding of the input here to tie them.
    """

    def __init__(self, table: LorentzEmbedding) -> None:
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.weight.size(0)))

    def forward(self, x: Tensor) -> Tensor:
        c = self.table.c
        with without_autocast(x):
            return F.linear(
                2 * lorentz.flip_time(at_least_float32(x)),
                self.table.points(),
                at_least_float32(self.bias) + 2 / c,
            )
