"""geoopt's Lorentz manifold, with stable versions of the operations that fail in float32."""

import sys

import torch
from torch import Tensor

from hyptrans.geometry import lorentz, riemannian
from hyptrans.geometry.precision import DEFAULT_MAX_RADIUS
from hyptrans.support.errors import UserError

if sys.flags.optimize > 1:
    raise UserError("python -OO leaves out docstrings, which geoopt edits: run python -O")

import geoopt
from geoopt import ManifoldParameter


class StableLorentz(geoopt.Lorentz):
    """geoopt's manifold, with its norm, exponential map and parallel transport replaced.

    To transport momentum, geoopt 0.5.1 divides by a squared distance that is rounding noise for
    small steps, and it takes norms from products that float32 makes negative: with Riemannian
    Adam, parameters with time coordinates near 11 turn NaN within a few hundred steps.

    Raises:
        ValueError: ``dim`` of an operation defined here is not the last, where points have their
            coordinates. Operations inherited from geoopt do not check it.

    Args:
        k: the curvature is ``-1 / k`` (geoopt's convention).
        max_radius: largest distance from the origin after a step, in units of ``sqrt(k)``.
    """

    name = "StableLorentz"

    def __init__(self, k: float = 1.0, max_radius: float = DEFAULT_MAX_RADIUS) -> None:
        super().__init__(k=float(k))
        self.c = 1 / float(k)
        self.max_radius = max_radius

    def egrad2rgrad(self, x: Tensor, u: Tensor, *, dim: int = -1) -> Tensor:
        _check_last(dim)
        return riemannian.project_tangent(x, lorentz.flip_time(u), c=self.c)

    def proju(self, x: Tensor, v: Tensor, *, dim: int = -1) -> Tensor:
        _check_last(dim)
        return riemannian.project_tangent(x, v, c=self.c)

    def projx(self, x: Tensor, *, dim: int = -1) -> Tensor:
        _check_last(dim)
        return self._bounded(lorentz.lift(x[..., 1:], c=self.c))

    def component_inner(self, x: Tensor, u: Tensor, v: Tensor | None = None) -> Tensor:
        """Return one squared norm per point, the second moment of all its coordinates."""
        if v is not None:
            return super().component_inner(x, u, v)
        return riemannian.tangent_squared_norm(x, u, c=self.c)

    def expmap(
        self, x: Tensor, u: Tensor, *, norm_tan: bool = True, project: bool = True, dim: int = -1
    ) -> Tensor:
        _check_last(dim)
        if norm_tan:
            u = self.proju(x, u)
        if not project:
            return riemannian.exp(x, u, c=self.c)
        # a longer step would also end beyond the bound, and the map would overflow
        longest = 2 * self.max_radius * self.c**-0.5
        length = riemannian.tangent_squared_norm(x, u, c=self.c).sqrt()
        return self._bounded(riemannian.exp(x, u * (longest / length.clamp_min(longest)), c=self.c))

    retr = expmap

    def transp(self, x: Tensor, y: Tensor, v: Tensor, *, dim: int = -1) -> Tensor:
        _check_last(dim)
        return riemannian.transport(x, y, v, c=self.c)

    def _bounded(self, x: Tensor) -> Tensor:
        return riemannian.clamp_radius(x, self.max_radius * self.c**-0.5, c=self.c)


def _check_last(dim: int) -> None:
    if dim != -1:
        raise ValueError(f"points have their coordinates in the last dimension, got dim={dim}")


def manifold_parameters(module: torch.nn.Module) -> list[str]:
    """Return the names of the parameters that are points of a manifold."""
    return [n for n, p in module.named_parameters() if isinstance(p, ManifoldParameter)]
