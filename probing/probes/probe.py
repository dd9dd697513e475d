"""Structural probes: maps from states to points whose distances and depths are those of a tree.

A probe holds one map for each of several layers and computes all layers in one product; layers do
not share parameters. One probe predicts tree distances as squared distances between points, another
predicts depths as squared distances from the origin.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space, lorentz_points, map_layers, vectors
from hyptrans.kernels.lorentz import from_linear
from probing.settings import Kind

INITIAL_LOG_SCALE = 0.5
"""Initial points then have times of 1.1 to 2.7, and distances and depths like those of small trees.
The initialization of models (2.3, weights of 0.02) would give all words depth 10, and absolute
errors would leave some layers at one depth for all words."""
LONGEST_TANGENT = 12.0
"""Most length of the Lorentz probe's tangents: ``exp_o`` overflows in float32 at 45, and at 12
points one rounding step apart stay distinct."""
LARGEST_RADIUS = 2 * math.atanh(1 - poincare.MARGINS[torch.float32])
"""Largest radius of the Poincare probe's points, 6.2: geoopt's bound of the ball in float32."""


class Stack(nn.Module):
    """A parameter per layer, so that each learns at its own pace; stacked to ``[layers, ...]``."""

    def __init__(self, initial: Tensor) -> None:
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(part.clone()) for part in initial])

    def forward(self, layers: Sequence[int]) -> Tensor:
        return torch.stack([self.values[layer] for layer in layers])


class Probe(nn.Module, ABC):
    """One probe for each of several layers of states.

    Shapes: ``states`` are ``[len(layers), B, N, width]``; ``layers`` names their layers and
    defaults to all.

    Args:
        width: coordinates of a state, time included.
        rank: coordinates of a point, time included.
        spaces: space of the states, one for each layer.
        rng: generator of the initial weights.
    """

    kind: Kind

    def __init__(
        self, width: int, rank: int, spaces: Sequence[Space], rng: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.width, self.rank, self.spaces, self.rng = width, rank, list(spaces), rng
        self._draw(width, rank, spaces)

    @abstractmethod
    def _draw(self, width: int, rank: int, spaces: Sequence[Space]) -> None:
        """Create the parameters in the order in which ``rng`` draws them."""

    def parameters_of(self, layer: int) -> list[nn.Parameter]:
        """Return the parameters of one layer."""
        stacks = [module for module in self.children() if isinstance(module, Stack)]
        return [cast(nn.Parameter, stack.values[layer]) for stack in stacks]

    @abstractmethod
    def points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        """Map states to points in the probe's own form, ``[..., N, rank]`` or ``rank - 1``."""

    def distances(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        """Return predicted tree distances ``[..., N, N]``, 0 from a word to itself."""
        found = self._distances(states, layers)
        itself = torch.eye(found.size(-1), dtype=torch.bool, device=found.device)
        # a point's product with itself is rounded, too
        return found.masked_fill(itself, 0)

    @abstractmethod
    def _distances(self, states: Tensor, layers: Sequence[int] | None) -> Tensor:
        """Return the distances of all pairs by one product, up to rounding."""

    def depths(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        """Return predicted depths ``[..., N]``: squared distances from the origin."""
        return self.points(states, layers).square().sum(-1)

    def lorentz_points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor | None:
        """Return points on the hyperboloid of curvature -1, ``[..., N, rank]``; None if flat."""
        return None

    def _chosen(self, layers: Sequence[int] | None) -> list[int]:
        return list(range(len(self.spaces)) if layers is None else layers)

    def _vectors(self, states: Tensor, layers: Sequence[int]) -> Tensor:
        return map_layers(vectors, states, [self.spaces[layer] for layer in layers])

    def _uniform(self, rows: int, columns: int, bound: float) -> Stack:
        weights = torch.rand(len(self.spaces), rows, columns, generator=self.rng)
        return Stack((2 * weights - 1) * bound)

    @property
    def _vector_width(self) -> int:
        return self.spaces[0].vector_width(self.width)


class LorentzProbe(Probe):
    """``p = LorentzLinear(Q(h))``, distances ``d2_L(p_i, p_j)`` and ``d2_L(p_i, o)``.

    Q is another Lorentz linear layer for hyperbolic states and ``exp_o(P h)`` for Euclidean ones.
    Source: HyboNet, appendix C.4.
    """

    kind = "lorentz"

    def _draw(self, width: int, rank: int, spaces: Sequence[Space]) -> None:
        self.flat = spaces[0].kind == "euclidean"
        if self.flat:
            # so states with coordinates of about 1 start with tangents of length about 1
            self.inner_weight = self._uniform(rank - 1, width, (3 / width / rank) ** 0.5)
        else:
            points = width + (spaces[0].kind == "poincare")
            self.inner_weight, self.inner_bias, self.inner_scale = self._linear(points, rank)
        self.weight, self.bias, self.scale = self._linear(rank, rank)

    def _linear(self, in_width: int, out_width: int) -> tuple[Stack, Stack, Stack]:
        """Return weight, bias and scale of Lorentz linear layers."""
        weight = self._uniform(out_width, in_width, in_width**-0.5)
        layers = len(self.spaces)
        scale = Stack(torch.full((layers, 1, 1), INITIAL_LOG_SCALE))
        return weight, Stack(torch.zeros(layers, out_width)), scale

    def points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        layers = self._chosen(layers)
        shape = states.shape[:-1]
        if self.flat:
            tangents = _product(states, self.inner_weight(layers))
            lengths = tangents.norm(dim=-1, keepdim=True).clamp_min(LONGEST_TANGENT)
            x = lorentz.exp_origin(tangents * (LONGEST_TANGENT / lengths))
        else:
            x = map_layers(lorentz_points, states, [self.spaces[layer] for layer in layers])
            z = _product(x, self.inner_weight(layers), self.inner_bias(layers))
            x = _lorentz_layer_point(z, self.inner_scale(layers))
        z = _product(x, self.weight(layers), self.bias(layers))
        return _lorentz_layer_point(z, self.scale(layers)).view(*shape, self.rank)

    def _distances(self, states: Tensor, layers: Sequence[int] | None) -> Tensor:
        points = self.points(states, layers)
        # rounding can make the distance of equal points negative
        return (-2 - 2 * lorentz.pairwise_inner(points, points)).clamp_min(0)

    def depths(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        return 2 * self.points(states, layers)[..., 0] - 2

    def lorentz_points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        return self.points(states, layers)


class PoincareProbe(Probe):
    """``p = Q (x)_M exp_o(P h)``, distances ``d(p_i, p_j)^2`` and ``d(p_i, o)^2``.

    As ``Q (x)_M exp_o(u) = exp_o(Q u)``, the probe stores a point as the tangent ``Q u`` and
    computes distances in the Lorentz model. Hyperbolic states first become tangent vectors, so that
    P acts on points of the ball as ``P (x)_M h``. Source: Chen et al. 2021.
    """

    kind = "poincare"

    def _draw(self, width: int, rank: int, spaces: Sequence[Space]) -> None:
        # the rank counts the time, which the ball does not have
        inner = (3 / self._vector_width / rank) ** 0.5
        self.inner_weight = self._uniform(rank - 1, self._vector_width, inner)
        self.weight = self._uniform(rank - 1, rank - 1, (3 / rank) ** 0.5)

    def points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        """Return tangents at the origin whose lengths are distances from it."""
        layers = self._chosen(layers)
        shape = states.shape[:-1]
        flat = self._vectors(states, layers)
        tangents = _product(_product(flat, self.inner_weight(layers)), self.weight(layers))
        lengths = tangents.norm(dim=-1, keepdim=True).clamp_min(LARGEST_RADIUS)
        return (tangents * (LARGEST_RADIUS / lengths)).view(*shape, self.rank - 1)

    def _distances(self, states: Tensor, layers: Sequence[int] | None) -> Tensor:
        points = self.lorentz_points(states, layers)
        return poincare.pairwise_squared_distance(points, points)

    def lorentz_points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        return lorentz.exp_origin(self.points(states, layers))


class EuclideanProbe(Probe):
    """``|B (h_i - h_j)|^2`` and ``|B h_i|^2``. Source: Hewitt and Manning 2019."""

    kind = "euclidean"

    def _draw(self, width: int, rank: int, spaces: Sequence[Space]) -> None:
        own = self._vector_width
        self.weight = self._uniform(rank, own, (3 / own / rank) ** 0.5)

    def points(self, states: Tensor, layers: Sequence[int] | None = None) -> Tensor:
        layers = self._chosen(layers)
        flat = _product(self._vectors(states, layers), self.weight(layers))
        return flat.view(*states.shape[:-1], self.rank)

    def _distances(self, states: Tensor, layers: Sequence[int] | None) -> Tensor:
        points = self.points(states, layers)
        # a shift shared by all words changes no distance and only adds rounding
        points = points - points.mean(-2, keepdim=True)
        squares = points.square().sum(-1)
        products = points @ points.transpose(-2, -1)
        return (squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * products).clamp_min(0)


PROBES: dict[str, type[Probe]] = {
    probe.kind: probe for probe in (LorentzProbe, PoincareProbe, EuclideanProbe)
}


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply each layer's matrix to all of its words.

    Shapes: x ``[layers, ..., D]``, weight ``[layers, R, D]``, bias ``[layers, R]``
    -> ``[layers, words, R]``.
    """
    rows, matrices = x.flatten(1, -2), weight.transpose(1, 2)
    return rows @ matrices if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, matrices)


def _lorentz_layer_point(z: Tensor, log_scale: Tensor) -> Tensor:
    """Turn the products of Lorentz linear layers into points; every layer has its own scale.

    Shapes: z ``[layers, words, R]``, log_scale ``[layers, 1, 1]`` -> ``[layers, words, R]``.
    """
    made = from_linear(z.transpose(0, 1).unsqueeze(2), log_scale.flatten(), c=1.0)
    return made.squeeze(2).transpose(0, 1)
