"""HyboNet without its hyperboloid: states on Euclidean spheres, for comparison.

HyboNet's layers consist of a matrix product, a residual, and normalization to a length. These
layers do only that: no times, ordinary dot products, plain means of values. Initial weights, the
form of scores and the places of dropout are HyboNet's. Fresh vectors have lengths of about 5
(positions, heads) and 10 (states), where HyboNet has 6 and 11: its times are larger by 1.1, and its
scores start larger accordingly. All other differences between the two come from the geometry.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry.precision import at_least_float32, full_precision
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.attention import Attention, Map, State, fused_attention
from hyptrans.layers.hybonet import INITIAL_LOG_SCALE, INITIAL_WEIGHT_BOUND
from hyptrans.layers.positions import position_vectors

LEAST_LENGTH = 1e-3
"""Divisor of vectors shorter than this: they stay inside the sphere, and their gradients are
bounded like those of HyboNet's points, whose epsilon is the square of this one."""


class SphereLinear(nn.Module):
    """``exp(s) v / |v|`` of ``v = W dropout(h(x)) + b + r``: a linear map onto a sphere.

    Shapes: ``[..., in_width]`` -> ``[..., out_width]``; :meth:`heads` returns ``projections``
    tensors ``[..., heads, out_width / heads]``, each vector normalized by itself.

    Args:
        in_width: numbers of the input.
        out_width: numbers of the output of one projection.
        log_radius: starting value of ``s``.
        relu: apply ReLU to the input before dropout.
        dropout: probability of zeroing an input number while training.
        heads: vectors to cut the output into.
        projections: number of maps in one product.
    """

    def __init__(
        self,
        in_width: int,
        out_width: int,
        *,
        log_radius: float = math.log(math.exp(INITIAL_LOG_SCALE) / 2),
        relu: bool = False,
        dropout: float = 0.0,
        heads: int = 1,
        projections: int = 1,
    ) -> None:
        super().__init__()
        self.relu, self.dropout = relu, dropout
        self.shape = (projections, heads, out_width // heads)
        self.weight = nn.Parameter(torch.empty(projections * out_width, in_width))
        nn.init.uniform_(self.weight, -INITIAL_WEIGHT_BOUND, INITIAL_WEIGHT_BOUND)
        self.bias = nn.Parameter(torch.zeros(projections * out_width))
        self.log_radius = nn.Parameter(torch.full((projections, 1, 1), log_radius))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        (vectors,) = self.heads(x, residual)
        return vectors.flatten(-2)

    def heads(self, x: Tensor, residual: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return all heads' vectors for each projection; ``residual`` has the output's width."""
        x = relu_dropout(x, self.dropout, relu=self.relu, training=self.training)
        v = products.linear(x.to(self.weight.dtype), self.weight, self.bias)
        v = at_least_float32(v if residual is None else v + residual).unflatten(-1, self.shape)
        unit = F.normalize(v, dim=-1, eps=LEAST_LENGTH)
        return (unit * at_least_float32(self.log_radius).exp()).unbind(-3)


class SpherePositions(nn.Module):
    """Position encoding: a linear map with the position's vector as its residual.

    Shapes: x ``[B, T, width]``, positions ``[B, T]`` (from 0) -> ``[B, T, width]``.

    Args:
        width: numbers of a state.
        max_positions: the layer encodes positions from 0 to one less than this.
        learned: vectors are learned; else sinusoidal.
        none: the linear map has no residual.
        dropout: probability on the input of the linear map.
    """

    def __init__(
        self,
        width: int,
        max_positions: int,
        *,
        learned: bool = True,
        none: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vectors = None if none else position_vectors(max_positions, width, learned=learned)
        self.linear = SphereLinear(width, width, dropout=dropout)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.linear(x, None if self.vectors is None else self.vectors(positions))


class SphereAttention(Attention):
    """Dot-product attention between vectors of equal length; averages the values.

    The weights are ``softmax(2 q . k / tau)``, like HyboNet's ``-d^2 / tau``, with learned ``tau``.

    Args:
        width: numbers of a state.
        heads: number of heads.
        memory_width: numbers of a state of the memory; for cross-attention only.
        dropout: probability on the input of the output layer.
        attention_dropout: probability on the inputs of the query, key and value maps.
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
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        super().__init__(width, heads, causal=causal)
        self.add_maps(
            lambda in_width, maps: SphereLinear(
                in_width, width, dropout=attention_dropout, heads=heads, projections=maps
            ),
            memory_width,
        )
        self.tau = nn.Parameter(torch.tensor(width**0.5))
        self.out = SphereLinear(width, width, log_radius=INITIAL_LOG_SCALE, dropout=dropout)

    def map_heads(self, name: Map, x: Tensor) -> tuple[Tensor, ...]:
        first, *rest = (made.transpose(1, 2) for made in getattr(self, name).heads(x))
        if "q" in name:
            first = first * (2 / at_least_float32(self.tau))
        return first, *rest

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        with full_precision(query):
            return fused_attention(
                query, key, value, allowed=allowed, is_causal=is_causal, scale=1.0
            )

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.out(heads.transpose(1, 2).flatten(2), x)


class SphereFeedForward(nn.Module):
    """Two linear maps onto spheres; the second has ReLU on its input and the block's residual.

    Shapes: ``[..., width]`` -> ``[..., width]``.

    Args:
        width: numbers of a state.
        inner_width: numbers between the two maps.
        dropout: probability on the inputs of both maps (after ReLU in the second).
    """

    def __init__(self, width: int, inner_width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = SphereLinear(width, inner_width, dropout=dropout)
        self.contract = SphereLinear(
            inner_width, width, log_radius=INITIAL_LOG_SCALE, relu=True, dropout=dropout
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.expand(x), x)


class SphereLogits(nn.Module):
    """Twice the dot products with one vector per token, plus a bias: HyboNet's logits, flat.

    Shapes: ``[..., width]`` -> ``[..., num_embeddings]``.

    Args:
        table: the vectors ``[num_embeddings, width]``; pass the input embedding to tie the two.
    """

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.num_embeddings))

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Return logits; a decoding ``state`` keeps nothing."""
        features, table = self.factors(x)
        return products.exact_linear(features, table)

    def factors(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``[..., width + 1]`` and ``[num_embeddings, width + 1]``, in float32 or better."""
        weight, bias = at_least_float32(self.table.weight), at_least_float32(self.bias)
        table = torch.cat([weight, bias.unsqueeze(-1)], dim=-1)
        x = at_least_float32(x)
        return torch.cat([2 * x, torch.ones_like(x[..., :1])], dim=-1), table
