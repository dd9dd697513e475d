"""Hyperbolic attention of an otherwise Euclidean Transformer (Gulcehre et al. 2018, HAN).

Linear maps give numbers, which are read as points of the hyperboloid of curvature -1; weights
come from the distances between queries and keys; the Einstein midpoint of the values is taken
in Klein coordinates, an ordinary vector, with which the Transformer goes on.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, without_autocast
from hyptrans.kernels.operators import relu_dropout
from hyptrans.layers.attention import Attention
from hyptrans.layers.residual import ResidualNorm

Coordinates = Literal["polar", "cartesian"]
Weights = Literal["softmax", "sigmoid"]

DEFAULT_MAX_RADIUS = 6.0
"""A float32 distance of two equal points is off by 0.04 at radius 5, by 0.7 at 8."""
LARGEST_MAX_RADIUS = 20.0
"""The square of the product of two times at this radius, 1e34, is still a float32 number."""
DIRECTION_EPSILON = 1e-6
"""Added to the length that a direction is divided by, so that the zero vector has none."""
LEAST_TIME = 1e-20
"""A weighted sum of points with a smaller time has no weights left: dropout took all that counted.
Points have times of at least 1, and 1e-20 leaves room for gradients and for a loss scale."""
QUERY_KEY_VALUE_GAIN = 2**-0.5
"""fairseq's gain for the maps of queries, keys and values where all have one width."""


def polar_points(numbers: Tensor, max_radius: float) -> Tensor:
    """Read a direction and, as the last number, a radius as a point.

    ``(cosh r, sinh r v / |v|)`` with ``r`` bounded smoothly, ``R tanh(r / R)``; a negative radius
    goes the opposite way. A zero vector gives the origin.

    Shapes: ``[..., n + 1]`` -> ``[..., n + 1]``. Source: HAN sec. 4.1, pseudo-polar coordinates.
    """
    numbers = at_least_float32(numbers)
    vector, radius = numbers[..., :-1], numbers[..., -1:]
    length = vector.norm(dim=-1, keepdim=True)
    reach = torch.sinh(max_radius * torch.tanh(radius / max_radius))
    return _scaled_point(vector, length, reach / (length + DIRECTION_EPSILON))


def cartesian_points(numbers: Tensor, max_radius: float) -> Tensor:
    """Read numbers as the space part of a point; those beyond the radius move back on their ray.

    Shapes: ``[..., n]`` -> ``[..., n + 1]``. Source: HAN sec. 5.5, without
    pseudo-polar coordinates.
    """
    vector = at_least_float32(numbers)
    length = vector.norm(dim=-1, keepdim=True)
    bound = math.sinh(max_radius)
    return _scaled_point(vector, length, bound / length.clamp_min(bound))


def _scaled_point(vector: Tensor, length: Tensor, scale: Tensor) -> Tensor:
    """The point above ``scale vector``, ``length`` being the length of ``vector``."""
    time = (1 + (length * scale).square()).sqrt()
    return torch.cat([time, vector * scale], dim=-1)


class Arcosh(torch.autograd.Function):
    """``arcosh(x)``, 0 where rounding took ``x`` below 1; the gradient there is zero.

    Only the result ``d`` is kept for the gradient, ``1 / sinh(d)``. It is bounded, as a float
    above 1 is so by one unit of rounding at least: at most 2,048 in float32.

    Source: ``arcosh(1 + u) = log1p(u + sqrt(u (u + 2)))``.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        u = (x - 1).clamp_(min=0)
        d = (u + 2).mul_(u).sqrt_().add_(u).log1p_()
        ctx.save_for_backward(d)
        return d

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (d,) = ctx.saved_tensors
        return (grad / d.sinh()).masked_fill_(d == 0, 0)


def distances(query: Tensor, key: Tensor) -> Tensor:
    """Distances between all queries and all keys, by one batched matrix product.

    Shapes: query ``[..., T, D]``, key ``[..., S, D]`` -> ``[..., T, S]``.
    """
    return Arcosh.apply(lorentz.flip_time(-query) @ key.transpose(-1, -2))


def midpoint(weights: Tensor, value: Tensor) -> Tensor:
    """Einstein midpoint of points, in Klein coordinates.

    With ``v = x_s / x_t`` the Lorentz factor ``1 / sqrt(1 - |v|^2)`` is ``x_t``, so the midpoint
    ``sum a_j x_jt v_j / sum a_j x_jt`` is the space part over the time of one weighted sum of
    points. The scale of a query's weights is free; without any weight it is the origin.

    Shapes: weights ``[..., T, S]``, value ``[..., S, D]`` -> ``[..., T, D - 1]``.
    Source: HAN eq. 3.
    """
    total = weights @ value
    time = total[..., :1]
    # one, and not the smallest time, in its place: its inverse would blow up the gradient
    return total[..., 1:] / time.masked_fill(time < LEAST_TIME, 1.0)


class HyperbolicAttention(Attention):
    """Attention by hyperbolic distances and midpoints, with residual and layer norm.

    Weights are ``softmax_j(-beta d(q, k_j))`` or ``sigmoid(-beta d(q, k_j) - c)``; ``beta > 0`` and
    ``c`` are learned for each head. Softmax drops ``c``, so only sigmoid has it. As the midpoint
    does not depend on the scale of the weights, those of sigmoid are taken as
    ``softmax_j(log sigmoid(score))``, which cannot underflow.

    Source: HAN eq. 2 and 3; the rest as in fairseq's Transformer, initial values included. A head
    has ``width / heads`` space dimensions; polar coordinates take one more number for the radius.

    Args:
        width: numbers of a state of the input and the output.
        heads: number of heads.
        memory_width: numbers of a state of the memory; given for cross-attention only.
        coordinates: how the numbers of the linear maps are read as points.
        weights: what makes weights of the scores.
        max_radius: no point is farther from the origin.
        dropout: probability of zeroing a number of the update.
        attention_dropout: probability of zeroing a weight.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or an option has no such value.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        memory_width: int | None = None,
        coordinates: Coordinates = "polar",
        weights: Weights = "softmax",
        max_radius: float = DEFAULT_MAX_RADIUS,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        super().__init__(causal=causal)
        if width % heads:
            raise ValueError(f"width={width} is not divisible by {heads} heads")
        if coordinates not in ("polar", "cartesian"):
            raise ValueError(f"coordinates must be 'polar' or 'cartesian', got {coordinates!r}")
        if weights not in ("softmax", "sigmoid"):
            raise ValueError(f"weights must be 'softmax' or 'sigmoid', got {weights!r}")
        if not 0 < max_radius <= LARGEST_MAX_RADIUS:
            raise ValueError(
                f"max_radius must be above 0 and at most {LARGEST_MAX_RADIUS}, where float32 "
                f"products of points overflow, got {max_radius}"
            )
        self.heads, self.coordinates, self.max_radius = heads, coordinates, max_radius
        self.attention_dropout = attention_dropout
        if memory_width is None:
            self.qkv = self._projection(width, width, 3, QUERY_KEY_VALUE_GAIN)
        else:
            gain = QUERY_KEY_VALUE_GAIN if memory_width == width else 1.0
            self.q = self._projection(width, width, 1, gain)
            self.kv = self._projection(memory_width, width, 2, gain)
        # softplus of it is 1
        self.beta_logit = nn.Parameter(torch.full((heads,), math.log(math.e - 1)))
        self.c = nn.Parameter(torch.zeros(heads)) if weights == "sigmoid" else None
        self.out = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.residual = ResidualNorm(width, dropout=dropout)

    def _projection(self, in_width: int, width: int, projections: int, gain: float) -> nn.Linear:
        numbers = width + self.heads * (self.coordinates == "polar")
        linear = nn.Linear(in_width, projections * numbers)
        for weight in linear.weight.chunk(projections):
            nn.init.xavier_uniform_(weight, gain=gain)
        return linear

    @property
    def beta(self) -> Tensor:
        """One positive number per head, ``[H, 1, 1]``."""
        return F.softplus(at_least_float32(self.beta_logit))[:, None, None]

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self._split(self.qkv(x), 3)
        return query, key, value

    def query(self, x: Tensor) -> Tensor:
        return self._split(self.q(x), 1)[0]

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key, value = self._split(self.kv(memory), 2)
        return key, value

    def _split(self, numbers: Tensor, projections: int) -> Tensor:
        """``[B, T, projections * H * n]`` -> ``[projections, B, H, T, D / H + 1]``."""
        heads = numbers.unflatten(-1, (projections, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.points(heads)

    def points(self, numbers: Tensor) -> Tensor:
        """The numbers of each head ``[..., n]`` as a point ``[..., D / H + 1]``."""
        if self.coordinates == "polar":
            return polar_points(numbers, self.max_radius)
        return cartesian_points(numbers, self.max_radius)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Midpoints in Klein coordinates, ``[B, H, T, D / H]``."""
        with without_autocast(query):
            scores = self.scores(query, key)
            if is_causal:
                allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
                allowed = allowed.tril()
            if allowed is not None:
                scores.masked_fill_(~allowed, -torch.inf)
            weights = relu_dropout(
                scores.softmax(-1), self.attention_dropout, training=self.training
            )
            return midpoint(weights, value)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Logarithms of the weights, up to a constant per query; ``[B, H, T, S]``."""
        apart = distances(query, key)
        if self.c is None:
            return apart * -self.beta
        c = at_least_float32(self.c)[:, None, None]
        return F.logsigmoid(torch.addcmul(-c, apart, -self.beta))

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        joined = heads.transpose(1, 2).flatten(2)
        return self.residual(x, self.out(joined.to(self.out.weight.dtype)))
