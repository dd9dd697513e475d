"""Riemannian Adam: stable where geoopt's is not, Adam on plain parameters, options that last."""

import copy
import math
from decimal import Decimal, localcontext

import geoopt
import pytest
import torch
from fairseq.optim import build_optimizer
from fairseq.optim.adam import Adam
from omegaconf import OmegaConf

import hyptrans.fairseq  # noqa: F401 - registers the optimizer
from hyptrans.geometry import lorentz, riemannian
from hyptrans.layers.manifold import StableLorentz
from hyptrans.optim import RiemannianAdam


def optimizer(parameters, **options):
    cfg = OmegaConf.create(
        {"_name": "riemannian_adam", "lr": [0.1], "adam_betas": "(0.9, 0.98)", **options}
    )
    return build_optimizer(cfg, parameters)


def points_at(radius, *shape, manifold, rng, c=1.0):
    """Points of some space coordinates at a distance from the origin, and their directions."""
    directions = torch.nn.functional.normalize(torch.randn(*shape, generator=rng), dim=-1)
    points = lorentz.exp_origin(directions * radius / c**0.5, c=c)
    return geoopt.ManifoldParameter(points, manifold=manifold), directions


def far_points(manifold, rng):
    """200 points of 64 coordinates at time 11."""
    return points_at(math.acosh(11), 200, 63, manifold=manifold, rng=rng)[0]


def first_step_that_is_not_finite(adam, points, rng, steps):
    for step in range(steps):
        # the gradient of a product with random vectors: g = 2 J x, x normal
        points.grad = lorentz.flip_time(2 * torch.randn(points.shape, generator=rng))
        adam.step()
        if not torch.isfinite(points).all():
            return step
    return None


def test_optimizer_stays_finite_where_geoopt_gives_nan(rng):
    settings = {"lr": 0.08, "betas": (0.9, 0.98)}
    points = far_points(geoopt.Lorentz(), rng)
    adam = geoopt.optim.RiemannianAdam([points], stabilize=100, **settings)
    assert first_step_that_is_not_finite(adam, points, rng, 500) is not None

    points = far_points(StableLorentz(), rng)
    adam = RiemannianAdam([points], **settings)
    assert first_step_that_is_not_finite(adam, points, rng, 2000) is None
    assert lorentz.violation(points.data).max() < 1e-5
    radius = lorentz.distance(points.data, lorentz.origin(64))
    assert radius.max() <= 6.001


@pytest.mark.parametrize("radius", [8.0, 10.0, 12.0, 16.0])
def test_momentum_does_not_grow_off_the_tangent_space_in_float32(radius, rng):
    manifold = StableLorentz(max_radius=radius)
    points, _ = points_at(radius, 50, 15, manifold=manifold, rng=rng)
    adam = RiemannianAdam([points], lr=0.1, betas=(0.9, 0.98))
    assert first_step_that_is_not_finite(adam, points, rng, 300) is None
    state = adam.state[points]
    at = lorentz.lift(points.detach()[:, 1:].double())
    momentum = riemannian.tangent_above(at, state["exp_avg"][:, 1:].double())
    length = riemannian.tangent_squared_norm(at, momentum)[:, 0].sqrt()
    # of any gradients at most 1.7 (Cauchy and Schwarz: 0.1 * 0.02^-0.5 * (1 - 0.9^2 / 0.98)^-0.5)
    assert (length / state["exp_avg_sq"][:, 0].double().sqrt()).max() < 2


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_one_step_near_the_origin_agrees_with_geoopt_in_float64(c, rng):
    start = lorentz.lift(torch.randn(20, 5, generator=rng, dtype=torch.float64), c=c)
    gradients = torch.randn(3, 20, 6, generator=rng, dtype=torch.float64)
    results = []
    for manifold, kind in [
        (geoopt.Lorentz(k=torch.tensor(1 / c, dtype=torch.float64)), geoopt.optim.RiemannianAdam),
        (StableLorentz(1 / c), RiemannianAdam),
    ]:
        points = geoopt.ManifoldParameter(start.clone(), manifold=manifold)
        adam = kind([points], lr=0.05, betas=(0.9, 0.98))
        for gradient in gradients:
            points.grad = gradient.clone()
            adam.step()
        results.append(points.data)
    assert (results[0] - start).abs().max() > 0.05
    torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_plain_parameters_follow_fairseqs_adam(weight_decay, rng):
    start = torch.randn(7, 3, generator=rng)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    mine = optimizer([ours], weight_decay=weight_decay)
    adam = Adam([theirs], lr=0.1, betas=(0.9, 0.98), weight_decay=weight_decay)
    for _ in range(10):
        gradient = torch.randn(7, 3, generator=rng)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        adam.step()
    assert (ours - start).abs().max() > 0.1
    torch.testing.assert_close(ours, theirs)


def plain_and_points(rng):
    plain = torch.nn.Parameter(torch.randn(4, generator=rng))
    points = geoopt.ManifoldParameter(
        lorentz.lift(torch.randn(6, 4, generator=rng)), manifold=StableLorentz()
    )
    for parameter in (plain, points):
        parameter.grad = torch.randn(parameter.shape, generator=rng)
    return plain, points


def test_scale_of_manifold_rates_survives_the_schedule_and_a_checkpoint(rng):
    parameters = plain_and_points(rng)
    adam = optimizer(parameters, embedding_lr_scale=8.0)
    adam.set_lr(0.01)
    adam.step()

    def rates(optimizer):
        return [group["lr"] for group in optimizer.param_groups]

    assert rates(adam) == pytest.approx([0.01, 0.08])
    assert adam.get_lr() == pytest.approx(0.01)
    resumed = optimizer(plain_and_points(rng), embedding_lr_scale=4.0)
    # another rate than that of the command line
    resumed.load_state_dict(copy.deepcopy(adam.state_dict()), {})
    assert rates(resumed) == pytest.approx([0.01, 0.04])
    resumed.load_state_dict(copy.deepcopy(adam.state_dict()), {"lr": 0.5})
    assert rates(resumed) == pytest.approx([0.5, 2.0])
    old, new = (list(o.optimizer.state.values())[1]["exp_avg"] for o in (adam, resumed))
    torch.testing.assert_close(new, old)


def test_radius_is_bounded_by_the_option(rng):
    points = far_points(StableLorentz(), rng)
    adam = optimizer([points], max_radius=2.0)
    points.grad = torch.zeros_like(points)
    adam.step()
    radius = lorentz.distance(points.data, lorentz.origin(64))
    torch.testing.assert_close(radius, torch.full_like(radius, 2.0))


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [
        ("embedding_lr_scale", -1.0, "above 0 and finite"),
        ("embedding_lr_scale", math.inf, "above 0 and finite"),
        ("max_radius", 0.0, "above 0 and at most 20.0, as"),
        ("max_radius", math.inf, "above 0 and at most 20.0, as"),
    ],
)
def test_options_out_of_range_or_without_effect_are_refused(name, value, range_, rng):
    flag = "--" + name.replace("_", "-")
    parameters = plain_and_points(rng)
    with pytest.raises(ValueError, match=f"{flag} must be {range_}"):
        optimizer(parameters, **{name: value})
    with pytest.raises(ValueError, match=f"{flag} acts on points, and no parameter of this model"):
        optimizer(parameters[:1], **{name: 5})


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("length", [1.0, 5.9, 13.0, 60.0, 1e4, 1e15])
def test_a_step_of_any_length_keeps_its_direction_and_the_radius_bound(length, c):
    manifold = StableLorentz(k=1 / c, max_radius=6.0)
    start = lorentz.origin(4, c=c)
    step = torch.tensor([0.0, 0.6, 0.0, -0.8]) * (length / c**0.5)
    end = manifold.expmap(start, step)
    assert lorentz.distance(end, start, c=c).item() == pytest.approx(
        min(length, 6.0) / c**0.5, rel=1e-5
    )
    torch.testing.assert_close(end[1:] / end[1:].norm(), step[1:] / step.norm())


def test_resuming_continues_bit_for_bit(rng):
    parameters = plain_and_points(rng)
    gradients = [[torch.randn(p.shape, generator=rng) for p in parameters] for _ in range(60)]

    def go_on(adam, parameters, gradients):
        for given in gradients:
            for parameter, gradient in zip(parameters, given, strict=True):
                parameter.grad = gradient.clone()
            adam.step()

    at_once, stopped = copy.deepcopy(parameters), copy.deepcopy(parameters)
    go_on(optimizer(at_once), at_once, gradients)
    first = optimizer(stopped)
    go_on(first, stopped, gradients[:30])
    second = optimizer(stopped)
    second.load_state_dict(copy.deepcopy(first.state_dict()), {})
    go_on(second, stopped, gradients[30:])
    for ours, expected in zip(stopped, at_once, strict=True):
        assert torch.equal(ours, expected)


def test_only_models_without_points_may_flatten_parameters(rng):
    plain, points = plain_and_points(rng)
    assert optimizer([plain]).supports_flat_params
    assert not optimizer([plain, points]).supports_flat_params


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("radius", [2.0, 8.0, 10.0, 15.0, 19.0])
def test_second_moment_is_the_squared_norm_at_any_allowed_radius(radius, c, rng):
    manifold = StableLorentz(1 / c, max_radius=20)
    points, direction = points_at(radius, 30, 7, manifold=manifold, rng=rng, c=c)
    start = points.detach().clone()
    # first any gradient, then one across the ray, of which a projection in float64 leaves nothing
    gradient = torch.randn(30, 8, generator=rng)
    gradient[15:, 0] = 0
    across = gradient[15:, 1:] - (gradient[15:, 1:] * direction[15:]).sum(-1, True) * direction[15:]
    gradient[15:, 1:] = across
    points.grad = gradient.clone()
    adam = RiemannianAdam([points], lr=0.0)
    adam.step()
    with localcontext(prec=60):
        for row, (x, g) in enumerate(zip(start.tolist(), gradient.tolist(), strict=True)):
            x, g = [Decimal(number) for number in x], [Decimal(number) for number in g]
            time = (sum(s**2 for s in x[1:]) + 1 / Decimal(c)).sqrt()
            # v = g with its time negated, <v, v> + c <x, v>^2: the norm of its projection
            along = time * g[0] + sum(s * n for s, n in zip(x[1:], g[1:], strict=True))
            squared = sum(n**2 for n in g[1:]) - g[0] ** 2 + Decimal(c) * along**2
            got = adam.state[points]["exp_avg_sq"][row].tolist()
            assert got == pytest.approx([float(squared) * 0.001] * 8, rel=1e-4), row


@pytest.mark.parametrize("radius", [2.0, 8.0, 10.0, 12.0])
def test_first_step_has_the_length_of_the_rate_far_from_the_origin(radius, rng):
    points, _ = points_at(radius, 200, 15, manifold=StableLorentz(max_radius=20), rng=rng)
    before = points.detach().clone()
    points.grad = torch.randn(200, 16, generator=rng)
    RiemannianAdam([points], lr=0.1).step()
    # coordinates in float32 are 1 % of the step apart at radius 12
    moved = lorentz.distance(before, points.detach())
    torch.testing.assert_close(moved, torch.full_like(moved, 0.1), rtol=0.05, atol=0.0)


def test_step_hooks_run_once_beside_torchs_adamw():
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer, calls = RiemannianAdam([parameter]), []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("behind"))
    parameter.grad = torch.ones(1)
    optimizer.step()
    assert calls == ["before", "behind"]
    assert parameter.item() == pytest.approx(-1e-3, rel=1e-5)


@pytest.mark.parametrize("manifold", [geoopt.PoincareBall(), geoopt.Lorentz(), geoopt.Euclidean()])
def test_points_of_other_manifolds_are_refused(manifold):
    point = geoopt.ManifoldParameter(torch.tensor([1.0, 0.0]), manifold=manifold)
    name = type(manifold).__name__
    with pytest.raises(ValueError, match=f"point of {name}: use geoopt.optim.Riem"):
        RiemannianAdam([point])
