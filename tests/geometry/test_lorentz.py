"""The Lorentz model against NumPy, geoopt and finite differences."""

import math

import geoopt
import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz, riemannian
from tests.geometry.helpers import CURVATURES, EXACT, points
from tests.oracles import lorentz as oracle


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("gap", [1e-3, 1.0], ids=["near", "far"])
@pytest.mark.parametrize("radius", [0.1, 3.0, 9.0])
def test_distance_matches_poincare_oracle_in_float32(radius, gap, c, rng):
    x = torch.randn(256, 32, generator=rng)
    x = x / x.norm(dim=-1, keepdim=True) * math.sinh(radius) / c**0.5
    y = x + gap * torch.randn(256, 32, generator=rng)
    got = lorentz.distance(lorentz.lift(x, c=c), lorentz.lift(y, c=c), c=c)
    expected = oracle.poincare_distance(x.double().numpy(), y.double().numpy(), c)
    np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_distance_of_near_points_far_out_keeps_its_digits_in_float64():
    direction = torch.nn.functional.normalize(torch.ones(5, dtype=torch.float64), dim=0)
    x, y = (lorentz.lift(direction * math.sinh(r)) for r in (9.0, 9.0 + 1e-7))
    assert lorentz.distance(x, y).item() == pytest.approx(1e-7, rel=1e-6)


def test_distance_of_a_point_to_itself_is_zero_with_zero_gradient(rng):
    x = points(rng, 4, 8).requires_grad_()
    d = lorentz.distance(x, x.detach())
    d.sum().backward()
    assert d.max() < 1e-100
    assert torch.equal(x.grad, torch.zeros_like(x))


@pytest.mark.parametrize("c", CURVATURES)
def test_maps_at_the_origin_agree_with_geoopt(c, rng):
    manifold = geoopt.Lorentz(k=torch.tensor(1 / c, dtype=torch.float64))
    v = torch.randn(64, 7, generator=rng, dtype=torch.float64)
    x = lorentz.exp_origin(v, c=c)
    torch.testing.assert_close(
        x, manifold.expmap0(torch.nn.functional.pad(v, (1, 0))), rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(lorentz.log_origin(x, c=c), v, **EXACT)
    expected = v.norm(dim=-1)
    torch.testing.assert_close(
        lorentz.distance(x, lorentz.origin(8, c=c, dtype=torch.float64), c=c), expected, **EXACT
    )


@pytest.mark.parametrize("c", CURVATURES)
def test_tangent_operations_agree_with_geoopt(c, rng):
    manifold = geoopt.Lorentz(k=torch.tensor(1 / c, dtype=torch.float64))
    x, y = points(rng, 64, 8, c=c), points(rng, 64, 8, c=c)
    ambient = torch.randn(64, 8, generator=rng, dtype=torch.float64)
    v = riemannian.project_tangent(x, ambient, c=c)
    close = {"rtol": 1e-8, "atol": 1e-8}  # geoopt's arcosh has lost digits beyond that
    torch.testing.assert_close(v, manifold.proju(x, ambient), **close)
    torch.testing.assert_close(
        riemannian.tangent_squared_norm(x, v, c=c)[:, 0], lorentz.inner(v, v), **close
    )
    torch.testing.assert_close(riemannian.exp(x, v, c=c), manifold.expmap(x, v), **close)
    torch.testing.assert_close(
        riemannian.transport(x, y, v, c=c), manifold.transp(x, y, v), **close
    )


@pytest.mark.parametrize("c", CURVATURES)
def test_centroid_matches_direct_sum_and_ignores_the_scale_of_weights(c, rng):
    x = points(rng, 6, 8, c=c)
    weights = torch.rand(3, 6, generator=rng, dtype=torch.float64)
    got = lorentz.centroid(x, weights, c=c)
    for row, w in zip(got, weights, strict=True):
        np.testing.assert_allclose(row, oracle.centroid(x.numpy(), w.numpy(), c), **EXACT)
    torch.testing.assert_close(lorentz.centroid(x, 100 * weights, c=c), got, **EXACT)
    uniform = torch.ones(1, 6, dtype=torch.float64)
    torch.testing.assert_close(
        lorentz.centroid(x, c=c), lorentz.centroid(x, uniform, c=c)[0], **EXACT
    )


def test_centroid_of_one_far_point_is_finite_in_float32(rng):
    x = points(rng, 1000, 1, 16, radius=9.9).float()
    assert (lorentz.inner(x, x) > 0).any()
    assert torch.isfinite(lorentz.centroid(x)).all()


@pytest.mark.parametrize("function", ["lift", "exp_origin", "log_origin"])
def test_zero_space_coordinates_have_finite_values_and_gradients(function):
    zero = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    argument = lorentz.lift(zero) if function == "log_origin" else zero
    out = getattr(lorentz, function)(argument)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(zero.grad).all()


@pytest.mark.parametrize("c", CURVATURES)
def test_gradients_agree_with_finite_differences(c, rng):
    space = torch.randn(3, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    other = points(rng, 3, 5, c=c)
    weights = torch.rand(2, 3, generator=rng, dtype=torch.float64)
    for function in (
        lambda s: lorentz.exp_origin(s, c=c),
        lambda s: lorentz.log_origin(lorentz.lift(s, c=c), c=c),
        lambda s: lorentz.distance(lorentz.lift(s, c=c), other, c=c),
        lambda s: lorentz.centroid(lorentz.lift(s, c=c), weights, c=c),
        lambda s: riemannian.project_tangent(other, lorentz.lift(s, c=c), c=c),
        lambda s: riemannian.exp(other, lorentz.lift(s, c=c), c=c),
    ):
        assert torch.autograd.gradcheck(function, space)


@pytest.mark.parametrize("c", CURVATURES)
def test_clamp_radius_moves_only_far_points_and_keeps_their_direction(c, rng):
    x = points(rng, 200, 8, radius=9.0, c=c)
    bound = 6.0 / c**0.5
    got = riemannian.clamp_radius(x, bound, c=c)
    start = lorentz.origin(8, c=c, dtype=torch.float64)
    before, after = lorentz.distance(x, start, c=c), lorentz.distance(got, start, c=c)
    torch.testing.assert_close(after, before.clamp_max(bound), **EXACT)
    directions = torch.nn.functional.cosine_similarity(x[:, 1:], got[:, 1:])
    torch.testing.assert_close(directions, torch.ones_like(directions))
    assert (before > bound).any()


def test_clamp_radius_has_a_gradient_at_the_origin():
    x = lorentz.origin(4).requires_grad_()
    riemannian.clamp_radius(x, 6.0).sum().backward()
    assert torch.equal(x.grad, torch.ones(4))
