"""The parts of the ordinary Transformer, with fairseq's initial values."""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.attention import Attention, Map, State, fused_attention, heads_of
from hyptrans.layers.positions import register_sinusoids

QUERY_KEY_VALUE_GAIN = 2**-0.5
"""fairseq's gain for the maps of queries, keys and values if all have the same width."""
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "linear": lambda x: x,
}
"""Activations between the two maps of a feed-forward block, by name."""


def inverse_softplus(value: float) -> float:
    """Return the inverse of softplus, accurate for a tiny ``value`` too."""
    return value + math.log(-math.expm1(-value))


class Linear(nn.Linear):
    """torch's linear layer, computed by :func:`hyptrans.kernels.products.linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self.weight, self.bias)


class ResidualNorm(nn.Module):
    """Residual and norm of a sublayer: ``LayerNorm(x + dropout(update))``.

    With ``norm_first`` the norm comes before the sublayer, in :meth:`enter`, not after the sum.

    Shapes: x, update ``[..., width]`` -> ``[..., width]``.

    Args:
        width: numbers of a state.
        dropout: probability of zeroing an entry of the update in training.
        norm_first: normalize the sublayer's input instead of its output.
    """

    def __init__(self, width: int, *, dropout: float = 0.0, norm_first: bool = False) -> None:
        super().__init__()
        self.dropout, self.norm_first = dropout, norm_first
        self.norm = nn.LayerNorm(width)

    def enter(self, x: Tensor) -> Tensor:
        """Return the input of the sublayer's maps: normalized if ``norm_first``."""
        return self.norm(x) if self.norm_first else x

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        x = x + relu_dropout(update, self.dropout, training=self.training)
        return x if self.norm_first else self.norm(x)


class ScaledEmbedding(nn.Module):
    """A table of one vector per token; a lookup multiplies by ``sqrt(width)`` or by ``scale``.

    Shapes: tokens ``[...]`` -> ``[..., width]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: numbers of a vector.
        padding_idx: row that starts at zero and gets no gradient from the lookup.
        scale: factor of the vectors looked up; None for ``sqrt(width)``.
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        *,
        padding_idx: int | None = None,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        self.scale = width**0.5 if scale is None else scale
        self.weight = nn.Parameter(torch.empty(num_embeddings, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        if padding_idx is not None:
            nn.init.zeros_(self.weight[padding_idx])

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scale * F.embedding(tokens, self.weight, self.padding_idx)


class AddedPositions(nn.Module):
    """Position encoding: add a vector per position, normalize if wanted, apply dropout.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.

    Args:
        width: numbers of a vector.
        max_positions: the layer encodes positions from 0 to one less than this.
        learned: vectors are learned, starting at N(0, 1 / width); else sinusoidal.
        none: add no vectors.
        norm: normalize the sum.
        dropout: probability of zeroing an entry of the result in training.
    """

    vectors: Tensor | None

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        learned: bool = True,
        none: bool = False,
        norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width) if norm else None
        if none:
            self.vectors = None
        elif learned:
            self.vectors = nn.Parameter(torch.empty(max_positions, width))
            nn.init.normal_(self.vectors, std=width**-0.5)
        else:
            register_sinusoids(self, "vectors", max_positions, width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        if self.vectors is not None:
            x = x + F.embedding(positions, self.vectors)
        if self.norm is not None:
            x = self.norm(x)
        return relu_dropout(x, self.dropout, training=self.training)


class DotProductAttention(Attention):
    """The Transformer's attention: ``softmax(q k^T / sqrt(d)) v``, with residual and norm.

    Source: Vaswani et al. (2017), section 3.2.

    Args:
        width: numbers of an input or output state.
        heads: number of heads.
        memory_width: numbers of a state of the memory; for cross-attention only.
        map_width: numbers that a map returns, for all heads together; None for ``width``.
        norm_first: see :class:`ResidualNorm`.
        dropout: probability of zeroing a number of the update.
        attention_dropout: probability of zeroing a weight.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        memory_width: int | None = None,
        map_width: int | None = None,
        norm_first: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        self.attention_dropout = attention_dropout
        gain = QUERY_KEY_VALUE_GAIN if memory_width in (None, width) else 1.0

        def projection(in_width: int, projections: int) -> Linear:
            linear = Linear(in_width, projections * (map_width or width))
            for weight in linear.weight.chunk(projections):
                nn.init.xavier_uniform_(weight, gain=gain)
            return linear

        self.add_maps(projection, memory_width)
        self.out = Linear(width, width)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.residual = ResidualNorm(width, dropout=dropout, norm_first=norm_first)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        x = x if name == "kv" else self.residual.enter(x)
        return heads_of(getattr(self, name)(x).unflatten(-1, (len(name), self.heads, -1)).unbind(2))

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        if self.training and self.attention_dropout:
            weights = self.weights(query, key, allowed, is_causal=is_causal)
            return relu_dropout(weights, self.attention_dropout).to(value.dtype) @ value
        return fused_attention(query, key, value, allowed=allowed, is_causal=is_causal)

    def weights(
        self, query: Tensor, key: Tensor, allowed: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        query = query * query.size(-1) ** -0.5
        return super().weights(query, key, allowed, is_causal=is_causal)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.residual(x, self.out(heads.transpose(1, 2).flatten(2)))


class FeedForward(nn.Module):
    """Two linear layers with ReLU or another activation between them, residual and norm.

    Shapes: ``[..., width]`` -> ``[..., width]``.

    Args:
        width: numbers of a state.
        inner_width: width between the two layers.
        dropout: probability of zeroing an entry of the update in training.
        activation: a name of :data:`ACTIVATIONS`.
        activation_dropout: probability of zeroing an entry between the layers in training.
        norm_first: see :class:`ResidualNorm`.
    """

    def __init__(
        self,
        width: int,
        inner_width: int,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        activation_dropout: float = 0.0,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.activation, self.activation_dropout = ACTIVATIONS[activation], activation_dropout
        self.expand = Linear(width, inner_width)
        self.contract = Linear(inner_width, width)
        self.residual = ResidualNorm(width, dropout=dropout, norm_first=norm_first)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.activation(self.expand(self.residual.enter(x)))
        inner = relu_dropout(inner, self.activation_dropout, training=self.training)
        return self.residual(x, self.contract(inner))


class DotProductLogits(nn.Module):
    """Output layer: dot products of states with one vector per token, without a bias.

    If ``inner_width`` differs from ``width``, a linear map changes the width of the states first.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: numbers of a state.
        table: embedding whose unscaled vectors the output shares; None for its own vectors.
        inner_width: numbers of a vector; None for ``width``.

    Raises:
        ValueError: the vectors of ``table`` do not have ``inner_width`` numbers.
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        *,
        table: ScaledEmbedding | None = None,
        inner_width: int | None = None,
    ) -> None:
        super().__init__()
        inner_width = width if inner_width is None else inner_width
        self.project: Linear | None = None
        if inner_width != width:
            self.project = Linear(width, inner_width, bias=False)
            nn.init.xavier_uniform_(self.project.weight)
        if table is None:
            self.weight = nn.Parameter(torch.empty(num_embeddings, inner_width))
            nn.init.normal_(self.weight, std=inner_width**-0.5)
        elif table.weight.size(1) == inner_width:
            self.weight = table.weight
        else:
            raise ValueError(
                f"an output of width {inner_width} cannot share embeddings of width "
                f"{table.weight.size(1)}"
            )

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Return the logits; a decoding ``state`` stays unchanged."""
        return products.linear(*self.factors(x))

    def factors(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return states ``[..., inner_width]`` and vectors, whose product is the logits."""
        return x if self.project is None else self.project(x), self.weight
