"""Random points of the Lorentz model and of the Poincare ball."""

import geoopt
import torch

from hyptrans.geometry import lorentz

CURVATURES = [0.25, 1.0, 4.0]
EXACT = {"rtol": 1e-12, "atol": 1e-12}
EXACT_IN_BALL = {"rtol": 1e-9, "atol": 1e-9}
"""What float64 leaves far from the origin in coordinates of a ball, Poincare's or Klein's."""


def points(rng, *shape, radius=2.0, c=1.0, dtype=torch.float64):
    """Points in random directions, at distances up to ``radius / sqrt(c)`` from the origin."""
    space = torch.randn(*shape[:-1], shape[-1] - 1, generator=rng, dtype=torch.float64)
    length = torch.sinh(torch.rand(*shape[:-1], 1, generator=rng, dtype=torch.float64) * radius)
    return lorentz.lift((space / space.norm(dim=-1, keepdim=True) * length / c**0.5).to(dtype), c=c)


def ball(rng, *shape, c=1.0, radius=2.0, dtype=torch.float64):
    """Points in random directions, at distances up to ``radius / sqrt(c)`` from the origin."""
    direction = torch.randn(*shape, generator=rng, dtype=torch.float64)
    length = torch.rand(*shape[:-1], 1, generator=rng, dtype=torch.float64) * radius / 2
    direction = direction / direction.norm(dim=-1, keepdim=True)
    return (direction * torch.tanh(length) / c**0.5).to(dtype)


def geoopt_ball(c):
    return geoopt.PoincareBall(c=torch.tensor(c, dtype=torch.float64))


def assert_on_hyperboloid(x, c=1.0):
    """In float64, to its last digits but four."""
    assert x.dtype == torch.float64
    assert x[..., 1:].abs().max() > 0.1, "points at the origin show nothing"
    time = (x[..., 1:].square().sum(-1) + 1 / c).sqrt()
    torch.testing.assert_close(x[..., 0], time, rtol=1e-12, atol=0)
