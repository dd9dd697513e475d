"""The parts of the ordinary Transformer that are not attention, with fairseq's initial values."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.decoding_state import State
from hyptrans.layers.positions import register_sinusoids


def inverse_softplus(value: float) -> float:
    """Where a parameter starts whose softplus is to be ``value``, which may be tiny."""
    return value + math.log(-math.expm1(-value))


class Linear(nn.Linear):
    """torch's, through :func:`hyptrans.kernels.products.linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self.weight, self.bias)


class ResidualNorm(nn.Module):
    """End of a sublayer: ``LayerNorm(x + dropout(update))``, the norm after the sum.

    Shapes: x, update ``[..., width]`` -> ``[..., width]``.

    Args:
        width: numbers of a state.
        dropout: probability of zeroing a number of the update while training.
    """

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return self.norm(x + relu_dropout(update, self.dropout, training=self.training))


class ScaledEmbedding(nn.Module):
    """A table of vectors, one per token; looked up times ``sqrt(width)``.

    Shapes: tokens ``[...]`` -> ``[..., width]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: numbers of a vector.
        padding_idx: this row starts at zero and gets no gradient from the lookup.
    """

    def __init__(self, num_embeddings: int, width: int, *, padding_idx: int | None = None) -> None:
        super().__init__()
        self.padding_idx, self.scale = padding_idx, width**0.5
        self.weight = nn.Parameter(torch.empty(num_embeddings, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        if padding_idx is not None:
            nn.init.zeros_(self.weight[padding_idx])

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scale * F.embedding(tokens, self.weight, self.padding_idx)


class AddedPositions(nn.Module):
    """Position encoding: a vector per position is added, then dropout.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.

    Args:
        width: numbers of a vector.
        max_positions: positions from 0 to one less than this can be encoded.
        learned: vectors are learned, starting at N(0, 1 / width); else sinusoidal.
        dropout: probability of zeroing a number of the sum while training.
    """

    vectors: Tensor

    def __init__(
        self, width: int, max_positions: int, *, learned: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = dropout
        if learned:
            self.vectors = nn.Parameter(torch.empty(max_positions, width))
            nn.init.normal_(self.vectors, std=width**-0.5)
        else:
            register_sinusoids(self, "vectors", max_positions, width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        x = x + F.embedding(positions, self.vectors)
        return relu_dropout(x, self.dropout, training=self.training)


class FeedForward(nn.Module):
    """Two linear layers with ReLU between them, residual and norm.

    Shapes: ``[..., width]`` -> ``[..., width]``.

    Args:
        width: numbers of a state.
        inner_width: numbers between the two layers.
        dropout: probability of zeroing a number of the update while training.
    """

    def __init__(self, width: int, inner_width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = Linear(width, inner_width)
        self.contract = Linear(inner_width, width)
        self.residual = ResidualNorm(width, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.residual(x, self.contract(F.relu(self.expand(x))))


class DotProductLogits(nn.Module):
    """Output layer: dot products with a vector per token, without a bias.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: numbers of a state.
        table: share its vectors (unscaled) with the output; else they are the layer's own.
    """

    def __init__(
        self, num_embeddings: int, width: int, *, table: ScaledEmbedding | None = None
    ) -> None:
        super().__init__()
        if table is None:
            self.weight = nn.Parameter(torch.empty(num_embeddings, width))
            nn.init.normal_(self.weight, std=width**-0.5)
        else:
            self.weight = table.weight

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Logits; there is nothing to keep in a decoding ``state``."""
        return products.linear(x, self.weight)

    def factors(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """``[..., width]`` and ``[num_embeddings, width]``, whose product the logits are."""
        return x, self.weight
