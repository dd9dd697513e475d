"""Public functions within their ranges against mpmath, and what they give beyond them."""

import inspect
import math

import mpmath
import pytest
import torch

from hyptrans.geometry import klein, lorentz, poincare, riemannian, space
from hyptrans.kernels import backend
from hyptrans.kernels.lorentz import normalize
from hyptrans.layers.curvature import Curvature, kept_curvatures
from tests.oracles import exact

DTYPES = [torch.float32, torch.float64]
both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
DIGITS = 400


@pytest.mark.parametrize(
    "module", [lorentz, riemannian, poincare, klein, space], ids=lambda m: m.__name__
)
def test_every_public_function_documents_its_range(module):
    functions = inspect.getmembers(module, inspect.isfunction)
    own = {n: f for n, f in functions if f.__module__ == module.__name__ and n[0] != "_"}
    assert own
    assert [n for n, f in own.items() if "Range:" not in inspect.getdoc(f)] == []


def at_radius(direction, radius, dtype):
    """Space coordinates of a point, computed with all digits and rounded once."""
    with mpmath.workdps(60):
        rows = [mpmath.sinh(radius) * one / exact.length(direction) for one in exact.exactly(direction)]  # fmt: skip  # noqa: E501
        return torch.tensor([float(one) for one in rows], dtype=torch.float64).to(dtype)


RAY, OTHER = [0.3, -0.5, 0.8], [-0.7, 0.1, 0.2]
PAIRS = [
    (RAY, r, other, s)
    for r, s in [(0.1, 0.2), (3, 3.1), (9, 9), (20, 18), (20, 0.5), (37, 0.3), (40, 12), (60, 60)]
    for other in (RAY, OTHER)
    if (other is OTHER or r + s < 45) and (r != s or other is OTHER)
]


def assert_near(got, expected, rtol, atol=0.0):
    with mpmath.workdps(60):
        off = [abs(mpmath.mpf(float(g)) - e) - rtol * abs(e) - atol for g, e in zip(got, expected, strict=True)]  # fmt: skip  # noqa: E501
    assert max(off) <= 0, (got, [float(e) for e in expected])


@both_dtypes
@pytest.mark.parametrize(("u", "r", "v", "s"), PAIRS)
def test_distances_are_accurate_near_and_far(u, r, v, s, dtype):
    x, y = at_radius(u, r, dtype), at_radius(v, s, dtype)
    got = lorentz.distance(lorentz.lift(x), lorentz.lift(y))
    with mpmath.workdps(DIGITS):
        expected = exact.distance(exact.exactly(x), exact.exactly(y))
    atol = 1e-14 * math.exp((r + s) / 2)
    assert_near([got], [expected], 4 * torch.finfo(dtype).eps, atol)


@both_dtypes
@pytest.mark.parametrize("radius", [37.0, 40.0, 80.0])
def test_the_distance_from_the_origin_is_the_radius_with_the_right_gradient(radius, dtype):
    x = at_radius(RAY, radius, dtype)
    start = lorentz.origin(4, dtype=dtype).requires_grad_()
    found = lorentz.distance(lorentz.lift(x), start)
    assert found.item() == pytest.approx(radius, rel=1e-6)
    (grad,) = torch.autograd.grad(found, start)
    unit = x.double() / x.double().norm()
    torch.testing.assert_close(grad[1:].double(), -unit, rtol=1e-5, atol=1e-5)


def test_distance_of_points_too_far_out_to_resolve_is_zero_or_nan():
    for r, s in [(30.0, 30.5), (37.0, 36.0), (60.0, 60.0)]:
        x, y = (lorentz.lift(at_radius(RAY, one, torch.float64)) for one in (r, s))
        y[1:] *= 1 + 1e-16
        found = lorentz.distance(x, y + (x - y) * 1e-17 if r == s else y)
        assert found.isnan() or found == 0


@both_dtypes
@pytest.mark.parametrize("radius", [1e-3, 1.0, 9.0, 40.0])
def test_exponential_map_and_logarithm_are_accurate_at_the_origin(radius, dtype):
    u = torch.tensor(RAY, dtype=dtype)
    u = u / u.norm() * radius
    point = at_radius(RAY, radius, dtype)
    with mpmath.workdps(DIGITS):
        there, back = exact.exp_origin(exact.exactly(u)), exact.log_origin(exact.exactly(point))
    eps = torch.finfo(dtype).eps
    assert_near(lorentz.exp_origin(u), there, (8 + 4 * radius) * eps)
    assert_near(lorentz.log_origin(lorentz.lift(point)), back, 8 * eps)


@both_dtypes
@pytest.mark.parametrize("towards", [RAY, [-one for one in RAY], OTHER], ids=["out", "in", "aside"])
@pytest.mark.parametrize(("radius", "size"), [(0.5, 0.1), (6, 5), (9, 2), (9, 9), (20, 20), (3, 0)])
def test_exponential_map_errs_by_few_roundings_of_its_largest_term(radius, size, towards, dtype):
    x = lorentz.lift(at_radius(RAY, radius, dtype))
    v = torch.tensor(towards, dtype=dtype)
    v = riemannian.tangent_above(x, v)
    length = riemannian.tangent_squared_norm(x.double(), v.double()).sqrt().to(dtype)
    v = v * (size / length)
    with mpmath.workdps(DIGITS):
        point, tangent = exact.lift(exact.exactly(x[1:])), exact.exactly(v[1:])
        tangent = [exact.dot(point[1:], tangent) / point[0], *tangent]
        expected, long = exact.exp(point, tangent), exact.tangent_length(tangent)
        largest = mpmath.cosh(long) * exact.length(point[1:])
    assert_near(riemannian.exp(x, v), expected, 0, 40 * torch.finfo(dtype).eps * float(largest))


@both_dtypes
def test_exponential_map_at_the_origin_overflows_to_infinity(dtype):
    last = 88.0 if dtype == torch.float32 else 709.0
    u = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=dtype)
    assert torch.isfinite(lorentz.exp_origin(last * u)).all()
    beyond = lorentz.exp_origin(1.05 * last * u)
    assert beyond[:, 0].isinf().all()
    assert not beyond.isnan().any()


@both_dtypes
@pytest.mark.parametrize("radius", [0.5, 9.0, 12.0])
def test_centroid_is_accurate_for_points_far_out(radius, dtype):
    rows = [at_radius(u, r, dtype) for u, r in ((RAY, radius), (OTHER, radius / 2), (RAY, radius))]
    spaces, weights = torch.stack(rows), torch.tensor([[0.5, 0.2, 0.3]], dtype=dtype)
    for some, w in ((spaces[:1], weights[:, :1]), (spaces, weights)):
        with mpmath.workdps(DIGITS):
            expected = exact.centroid([exact.exactly(x) for x in some], exact.exactly(w[0]))
        got = lorentz.centroid(lorentz.lift(some), w)[0]
        size = max(abs(one) for one in expected)
        assert_near(got, expected, 0, float(size) * max(2e-6, 8 * torch.finfo(dtype).eps))


@both_dtypes
def test_centroid_of_points_beyond_its_precision_is_nan(dtype):
    x = lorentz.lift(at_radius(RAY, 20.0, dtype))[None]
    assert lorentz.centroid(x).isnan().all()


@both_dtypes
@pytest.mark.parametrize("kernels", ["numba", "eager"])
def test_vectors_of_any_small_size_are_normalized(kernels, dtype, monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", kernels)
    v = torch.tensor([[5.0, 3.0, 0.0]], dtype=dtype)
    smallest = torch.finfo(dtype).tiny ** 0.5 * 1e-2
    for size in (1e-20, smallest):
        small = (size * v).requires_grad_()
        made = normalize(small)
        torch.testing.assert_close(made, normalize(v))
        (grad,) = torch.autograd.grad(made.sum(), small)
        assert torch.isfinite(grad).all()


@both_dtypes
def test_polar_points_of_tiny_directions_have_gradients(dtype):
    for size in (1e-20, 1e-22, 1e-25, 1e-38, 0.0):
        z = torch.full((1, 4), size, dtype=dtype)
        z[..., -1] = 2.0
        made = klein.polar_points(z.requires_grad_(), 6.0)
        (grad,) = torch.autograd.grad(made.sum(), z)
        assert torch.isfinite(grad).all()
        expected = math.sinh(6 * math.tanh(2 / 6)) / klein.DIRECTION_EPSILON
        torch.testing.assert_close(grad[..., 0], torch.full_like(grad[..., 0], expected))


@both_dtypes
@pytest.mark.parametrize("radius", [0.01, 2.0, 6.0])
def test_ball_functions_are_accurate_within_the_clamp(radius, dtype):
    u, v = (torch.tensor(one, dtype=dtype) for one in (RAY, OTHER))
    x, y = (one / one.norm() * math.tanh(radius / 2) for one in (u, v))
    eps = torch.finfo(dtype).eps * math.cosh(radius / 2) ** 2
    with mpmath.workdps(DIGITS):
        apart = exact.ball_distance(exact.exactly(x), exact.exactly(y))
        lifted = exact.to_lorentz(exact.exactly(x))
    assert_near([poincare.distance(x, y)], [apart], 16 * eps)
    size = float(max(map(abs, lifted)))
    assert_near(poincare.to_lorentz(x), lifted, 16 * eps, 16 * eps * size)
    torch.testing.assert_close(poincare.from_lorentz(poincare.to_lorentz(x)), x)
    tangent = poincare.log_origin(x)
    torch.testing.assert_close(2 * tangent.norm().item(), radius, rtol=16 * eps + 1e-6, atol=0)
    torch.testing.assert_close(poincare.exp_origin(tangent), x)


@both_dtypes
def test_ball_functions_keep_points_inside(dtype):
    inside, outside = torch.tensor([0.5, 0.0], dtype=dtype), torch.tensor([1.5, 0.0], dtype=dtype)
    border = torch.tensor([1.0, 0.0], dtype=dtype)
    assert poincare.distance(inside, outside).isnan()
    assert poincare.distance(outside, outside + 1).isnan()
    assert poincare.distance(inside, border).isinf()
    assert poincare.to_lorentz(outside).isnan().all()
    assert not torch.isfinite(poincare.to_lorentz(border)[0])


@both_dtypes
@pytest.mark.parametrize("radius", [0.1, 3.0, 19.0])
def test_polar_points_match_the_formula(radius, dtype):
    numbers = torch.tensor([*RAY, radius], dtype=dtype)
    with mpmath.workdps(DIGITS):
        epsilon = mpmath.mpf(klein.DIRECTION_EPSILON)
        expected = exact.polar(exact.exactly(numbers), mpmath.mpf(20), epsilon)
    got = klein.polar_points(numbers, 20.0)
    assert_near(got, expected, 30 * (1 + radius) * torch.finfo(dtype).eps)


def test_space_refuses_impossible_curvatures():
    for c in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="c must be above 0 and finite"):
            space.Space("lorentz", c)


@pytest.mark.parametrize("raw", [-200.0, -1e4])
@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_learned_curvature_stays_above_zero(kept, gradient, raw):
    curvature = Curvature(1.0)
    with torch.no_grad():
        curvature.raw.fill_(raw)
    with torch.set_grad_enabled(gradient):
        if kept:
            with kept_curvatures(curvature):
                c = curvature()
        else:
            c = curvature()
        assert c > 0
        assert torch.isfinite(lorentz.lift(torch.ones(3), c=c)).all()
