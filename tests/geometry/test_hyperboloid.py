"""Functions that make points of the Lorentz model give points of their hyperboloid."""

import pytest
import torch

from hyptrans.geometry import klein, lorentz, poincare
from hyptrans.kernels.lorentz import normalize
from tests.geometry.helpers import CURVATURES, assert_on_hyperboloid, ball, points


def space(rng, *shape):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def moved(rng, c):
    x = points(rng, 50, 8, c=c)
    return lorentz.exp(x, lorentz.project_tangent(x, space(rng, 50, 8), c=c), c=c)


FUNCTIONS = {
    "lift": lambda rng, c: lorentz.lift(space(rng, 50, 7), c=c),
    "exp_origin": lambda rng, c: lorentz.exp_origin(space(rng, 50, 7), c=c),
    "exp": moved,
    "normalize": lambda rng, c: lorentz.normalize(3 * points(rng, 50, 8, c=1.7), c=c),
    "centroid": lambda rng, c: lorentz.centroid(points(rng, 50, 9, 8, c=c), c=c),
    "from_linear": lambda rng, c: lorentz.from_linear(
        space(rng, 50, 8), torch.ones(1).double(), c=c
    ),
    "clamp_radius": lambda rng, c: lorentz.clamp_radius(points(rng, 50, 8, c=c), 0.5, c=c),
    "to_lorentz": lambda rng, c: poincare.to_lorentz(ball(rng, 50, 7, c=c), c=c),
    "normalized": lambda rng, c: normalize(3 * points(rng, 50, 8, c=1.7), c=c),
}


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_points_lie_on_the_hyperboloid(function, c, rng):
    assert_on_hyperboloid(FUNCTIONS[function](rng, c), c)


@pytest.mark.parametrize("c", CURVATURES)
def test_lifted_ball_tangents_lie_on_the_unit_hyperboloid(c, rng):
    assert_on_hyperboloid(poincare.lift_tangent(space(rng, 50, 7), c=c))


@pytest.mark.parametrize("function", [klein.polar_points, klein.cartesian_points])
def test_points_from_klein_coordinates_lie_on_the_unit_hyperboloid(function, rng):
    assert_on_hyperboloid(function(3 * space(rng, 50, 7), 6.0))
