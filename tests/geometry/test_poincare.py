"""The Poincare ball against NumPy, geoopt and finite differences."""

import math

import geoopt
import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from tests.geometry.helpers import CURVATURES, EXACT_IN_BALL, ball, geoopt_ball
from tests.oracles import poincare as oracle


@pytest.mark.parametrize("c", CURVATURES)
def test_maps_at_the_origin_agree_with_geoopt(c, rng):
    manifold = geoopt_ball(c)
    u = torch.randn(64, 7, generator=rng, dtype=torch.float64) * 0.5 / c**0.5
    x = poincare.exp_origin(u, c=c)
    torch.testing.assert_close(x, manifold.projx(manifold.expmap0(u)), **EXACT_IN_BALL)
    torch.testing.assert_close(poincare.log_origin(x, c=c), manifold.logmap0(x), **EXACT_IN_BALL)
    torch.testing.assert_close(poincare.log_origin(x, c=c), u, **EXACT_IN_BALL)


@pytest.mark.parametrize("c", CURVATURES)
def test_mobius_addition_agrees_with_geoopt_and_numpy(c, rng):
    x, y = ball(rng, 64, 7, c=c, radius=5.0), ball(rng, 64, 7, c=c, radius=5.0)
    got = poincare.mobius_add(x, y, c=c)
    manifold = geoopt_ball(c)
    torch.testing.assert_close(got, manifold.projx(manifold.mobius_add(x, y)), **EXACT_IN_BALL)
    expected = [oracle.mobius_add(*pair, c) for pair in zip(x.numpy(), y.numpy(), strict=True)]
    np.testing.assert_allclose(got, expected, **EXACT_IN_BALL)


def test_mobius_addition_of_a_point_and_its_opposite_is_the_origin(rng):
    x = ball(rng, 64, 7, radius=12.0, dtype=torch.float32)
    x = poincare.clamp(x)
    total = poincare.mobius_add(x, -x)
    assert torch.isfinite(total).all()
    near = 1 - x.norm(dim=-1) > 0.1
    assert total[near].norm(dim=-1).max() < 1e-5


@pytest.mark.parametrize("c", CURVATURES)
def test_distances_agree_with_geoopt_and_numpy(c, rng):
    x, y = ball(rng, 2, 5, 7, c=c, radius=5.0), ball(rng, 2, 6, 7, c=c, radius=5.0)
    got = poincare.pairwise_distance(x, y, c=c)
    torch.testing.assert_close(got, geoopt_ball(c).dist(x[:, :, None], y[:, None]), **EXACT_IN_BALL)
    one_by_one = poincare.distance(x[:, :, None], y[:, None], c=c)
    torch.testing.assert_close(one_by_one, got, **EXACT_IN_BALL)
    for b in range(2):
        expected = [[oracle.distance(p, q, c) for q in y[b].numpy()] for p in x[b].numpy()]
        np.testing.assert_allclose(got[b], expected, **EXACT_IN_BALL)


@pytest.mark.parametrize("gap", [1e-6, 1e-3])
def test_distance_of_near_pairs_keeps_its_digits_in_float32(gap, rng):
    x = ball(rng, 64, 8, radius=4.0, dtype=torch.float32)
    y = x + gap * torch.randn(64, 8, generator=rng) * (1 - x.square().sum(-1, keepdim=True))
    expected = poincare.distance(x.double(), y.double())
    torch.testing.assert_close(poincare.distance(x, y).double(), expected, rtol=5e-5, atol=0)


def test_distance_of_a_point_to_itself_has_a_finite_gradient(rng):
    x = ball(rng, 4, 8).requires_grad_()
    (poincare.distance(x, x.detach()).sum() + poincare.pairwise_distance(x, x).sum()).backward()
    assert torch.isfinite(x.grad).all()


def test_squared_distance_has_its_exact_slope_at_zero():
    product = torch.tensor([-1.0, -1 - 1e-3], dtype=torch.float64, requires_grad=True)
    poincare.squared_arcosh(product).sum().backward()
    excess = 1e-3  # arcosh(1 + e)^2 = 2 e - e^2 / 3 + O(e^3)
    expected = torch.tensor([-2.0, -2 + 2 * excess / 3 - 4 * excess**2 / 15], dtype=torch.float64)
    torch.testing.assert_close(product.grad, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("c", CURVATURES)
def test_gyromidpoint_is_the_einstein_midpoint_and_the_lorentz_centroid(c, rng):
    points = ball(rng, 3, 9, 6, c=c, radius=5.0)
    weights = torch.rand(3, 4, 9, generator=rng, dtype=torch.float64)
    got = poincare.midpoint(points, weights, c=c)
    centroid = lorentz.centroid(poincare.to_lorentz(points, c=c), weights, c=c)
    torch.testing.assert_close(got, poincare.from_lorentz(centroid, c=c), **EXACT_IN_BALL)
    for b in range(3):
        expected = [oracle.midpoint(points[b].numpy(), w, c) for w in weights[b].numpy()]
        np.testing.assert_allclose(got[b], expected, **EXACT_IN_BALL)
    for w, expected in zip(weights[0], got[0], strict=True):
        theirs = geoopt_ball(c).weighted_midpoint(points[0], weights=w, reducedim=[0])
        torch.testing.assert_close(theirs, expected, **EXACT_IN_BALL)


def test_gyromidpoint_ignores_the_scale_of_its_weights(rng):
    points = ball(rng, 9, 6)
    weights = torch.rand(4, 9, generator=rng, dtype=torch.float64)
    scaled = poincare.midpoint(points, weights * 1e-6)
    torch.testing.assert_close(scaled, poincare.midpoint(points, weights), **EXACT_IN_BALL)
    # less counts as no weights, and nothing lies between
    assert poincare.midpoint(points, weights * 1e-14).abs().max() < 1e-12
    assert weights.sum(-1).min() > 1
    least = poincare.midpoint(points, weights * 1e-12)
    torch.testing.assert_close(least, poincare.midpoint(points, weights), **EXACT_IN_BALL)


def test_gyromidpoint_without_weights_is_the_origin_with_finite_gradients(rng):
    points = ball(rng, 9, 6, dtype=torch.float32).requires_grad_()
    weights = torch.zeros(2, 9, requires_grad=True)
    mean = poincare.midpoint(points, weights)
    mean.sum().backward()
    assert mean.abs().max() == 0
    assert torch.isfinite(points.grad).all()
    assert torch.isfinite(weights.grad).all()


@pytest.mark.parametrize("c", CURVATURES)
def test_round_trip_to_lorentz_keeps_points_and_distances(c, rng):
    x, y = ball(rng, 64, 7, c=c, radius=5.0), ball(rng, 64, 7, c=c, radius=5.0)
    lifted = [poincare.to_lorentz(p, c=c) for p in (x, y)]
    assert lorentz.violation(lifted[0], c=c).max() < 1e-14
    torch.testing.assert_close(poincare.from_lorentz(lifted[0], c=c), x, **EXACT_IN_BALL)
    expected = poincare.distance(x, y, c=c)
    torch.testing.assert_close(lorentz.distance(*lifted, c=c), expected, **EXACT_IN_BALL)
    unit = poincare.lift_tangent(poincare.log_origin(x, c=c), c=c)
    torch.testing.assert_close(unit, lifted[0] * c**0.5, **EXACT_IN_BALL)


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_clamp_matches_geoopts_projection(dtype, c, rng):
    x = torch.randn(64, 3, generator=rng, dtype=dtype) / c**0.5
    x[0] = 0
    manifold = geoopt.PoincareBall(c=torch.tensor(c, dtype=dtype))
    torch.testing.assert_close(poincare.clamp(x, c=c), manifold.projx(x))
    assert (poincare.clamp(x, c=c) != x).any(-1).sum() > 10


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_every_function_stays_inside_the_ball(dtype, c, rng):
    far = torch.randn(64, 5, generator=rng, dtype=dtype) * 30 / c**0.5
    x, y = poincare.exp_origin(far, c=c), poincare.exp_origin(far.flip(0), c=c)
    points = [
        x,
        poincare.mobius_add(x, y, c=c),
        poincare.midpoint(x, torch.rand(3, 64, generator=rng, dtype=dtype), c=c),
        poincare.midpoint(x[:1], torch.ones(1, 1, dtype=dtype), c=c),
        poincare.from_lorentz(lorentz.lift(far * 1e4, c=c), c=c),
    ]
    rounding = 1 + 2 * torch.finfo(dtype).eps
    for point in points:
        assert point.norm(dim=-1).max() <= poincare.max_norm(dtype, c=c) * rounding


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_tangents_are_no_longer_than_the_clamp_allows(dtype, rng):
    bound = math.atanh(1 - poincare.MARGINS[dtype]) * (1 + 1e-4)
    edge = poincare.clamp(torch.randn(8, 5, generator=rng, dtype=dtype) * 9)
    u = poincare.log_origin(edge)
    ahead = torch.tensor([[1.0, 1.0, 0.0]], dtype=dtype)  # as long as its time, by rounding
    for tangent in (
        u,
        poincare.log_origin(2 * edge),
        poincare.add_tangents(u, u),
        poincare.centroid_tangent(ahead),
    ):
        assert torch.isfinite(tangent).all()
        assert tangent.norm(dim=-1).max() <= bound


FUNCTIONS = {
    "exp": lambda x, y: poincare.exp_origin(x),
    "log": lambda x, y: poincare.log_origin(x),
    "add": poincare.mobius_add,
    "add_tangents": poincare.add_tangents,
    "clamp": lambda x, y: poincare.clamp(x),
    "to_lorentz": lambda x, y: poincare.to_lorentz(x),
    "from_lorentz": lambda x, y: poincare.from_lorentz(poincare.to_lorentz(x)),
    "midpoint": lambda x, y: poincare.midpoint(x, torch.ones(1, len(x), dtype=x.dtype)),
    "squared distances": lambda x, y: poincare.pairwise_squared_distance(
        poincare.lift_tangent(x), poincare.lift_tangent(y)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zeros_and_clamped_points_have_finite_values_and_gradients(name, rng):
    edge = poincare.clamp(torch.randn(3, 4, generator=rng) * 9)
    x = torch.cat([torch.zeros(2, 4), edge, -edge, edge * 1e-8]).requires_grad_()
    y = torch.cat([torch.zeros(1, 4), edge, edge, -edge, x.detach()[:1]]).requires_grad_()
    out = FUNCTIONS[name](x, y)
    assert torch.isfinite(out).all()
    out.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert y.grad is None or torch.isfinite(y.grad).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_finite_differences(name, rng):
    x, y = (ball(rng, 3, 4, radius=3.0).requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(FUNCTIONS[name], (x, y))


@pytest.mark.parametrize("length", [0.0, 1e-12, 1e-7, 1e-4])
def test_maps_have_gradient_one_near_zero_in_float32(length):
    u = torch.tensor([length, 0.0, 0.0], requires_grad=True)
    for function in (poincare.exp_origin, poincare.log_origin):
        (gradient,) = torch.autograd.grad(function(u)[0], u)
        torch.testing.assert_close(gradient, torch.tensor([1.0, 0.0, 0.0]), rtol=0, atol=1e-3)
