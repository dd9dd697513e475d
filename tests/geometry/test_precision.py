"""Points in half precision and under autocast: products of float32, and float32 results."""

import pytest
import torch

from hyptrans.geometry import klein, lorentz, poincare, riemannian
from tests.geometry.helpers import ball, points

# of points of the hyperboloid, weights of them, and points of the ball
FUNCTIONS = {
    "lift": lambda x, w, b: lorentz.lift(x),
    "inner": lambda x, w, b: lorentz.inner(x, x),
    "pairwise inner": lambda x, w, b: lorentz.pairwise_inner(x, x),
    "weighted centroid": lambda x, w, b: lorentz.centroid(x, w),
    "centroid": lambda x, w, b: lorentz.centroid(x),
    "time above": lambda x, w, b: lorentz.time_above(w),
    "projection on a tangent space": lambda x, w, b: riemannian.project_tangent(x, x.flip(-1)),
    "norm of a tangent": lambda x, w, b: riemannian.tangent_squared_norm(x, x.flip(-1)),
    "exponential map": lambda x, w, b: riemannian.exp(x, x.flip(-1)),
    "parallel transport": lambda x, w, b: riemannian.transport(x, x.flip(1), x.flip(-1)),
    "clamped radius": lambda x, w, b: riemannian.clamp_radius(x, 2.0),
    "distances of Klein": lambda x, w, b: klein.distances(x, x),
    "midpoint of Klein": lambda x, w, b: klein.midpoint(w, x),
    "midpoint of a sum": lambda x, w, b: klein.midpoint_of_sum(x),
    "squared distances": lambda x, w, b: poincare.pairwise_squared_distance(x, x),
    "distance in the ball": lambda x, w, b: poincare.distance(b, b.flip(1)),
    "point of the ball": lambda x, w, b: poincare.exp_origin(b),
    "tangent of the ball": lambda x, w, b: poincare.log_origin(b),
    "sum in the ball": lambda x, w, b: poincare.mobius_add(b, b),
    "sum of tangents": lambda x, w, b: poincare.add_tangents(b, b),
    "lifted tangent": lambda x, w, b: poincare.lift_tangent(b),
    "lifted point": lambda x, w, b: poincare.to_lorentz(b),
    "projected point": lambda x, w, b: poincare.from_lorentz(x),
    "clamped point": lambda x, w, b: poincare.clamp(2 * b),
    "distances in the ball": lambda x, w, b: poincare.pairwise_distance(b, b),
    "midpoint in the ball": lambda x, w, b: poincare.midpoint(b, w),
    "tangent of a sum": lambda x, w, b: poincare.centroid_tangent(x),
}
HALF = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


def operands(rng):
    weights = torch.rand(2, 4, 9, generator=rng)
    far = points(rng, 2, 9, 8, radius=3.0, dtype=torch.float32)
    return far, weights, ball(rng, 2, 9, 8, dtype=torch.float32)


@HALF
@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_matches_float32_on_the_same_numbers(name, dtype, rng):
    given = [t.to(dtype) for t in operands(rng)]
    got = FUNCTIONS[name](*given)
    assert got.dtype == torch.float32
    assert torch.equal(got, FUNCTIONS[name](*(t.float() for t in given)))


@HALF
@pytest.mark.parametrize("name", FUNCTIONS)
def test_autocast_changes_no_bit(name, dtype, rng):
    given = [t.requires_grad_() for t in operands(rng)]
    expected = FUNCTIONS[name](*given)
    with torch.autocast("cpu", dtype=dtype):
        got = FUNCTIONS[name](*given)
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(got, expected)
    by_got, by_expected = (
        torch.autograd.grad(out.sum(), given, allow_unused=True) for out in (got, expected)
    )
    for ours, theirs in zip(by_got, by_expected, strict=True):
        assert (ours is None and theirs is None) or torch.equal(ours, theirs)


def test_points_and_weights_may_differ_in_precision(rng):
    x = points(rng, 5, 4, radius=1.0, dtype=torch.float64)
    weights = torch.rand(2, 5, generator=rng)
    mixed = lorentz.centroid(x, weights)
    assert mixed.dtype == torch.float64
    torch.testing.assert_close(mixed, lorentz.centroid(x, weights.double()), rtol=0, atol=0)
