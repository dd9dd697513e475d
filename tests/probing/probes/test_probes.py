"""Probes against their formulas word by word, and against geoopt."""

import geoopt
import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space, lorentz_points, map_layers, vectors
from hyptrans.layers.hybonet import LorentzLinear
from probing.probes.probe import LARGEST_RADIUS, PROBES, PoincareProbe

WIDTH, RANK, LAYERS = 8, 6, 3
SPACES = {
    "euclidean": [Space("euclidean")] * LAYERS,
    "lorentz": [Space("lorentz", c) for c in (0.5, 1.0, 2.0)],
    "poincare": [Space("poincare", 0.7)] * LAYERS,
}
KINDS = list(PROBES)


def states_of(kind, rng, batch=2, words=5):
    """States ``[layers, batch, words, WIDTH]`` in float64, each on its layer's manifold."""
    x = torch.randn(LAYERS, batch, words, WIDTH, generator=rng, dtype=torch.float64)
    if kind == "lorentz":
        return map_layers(lambda p, space: lorentz.lift(p[..., 1:], c=space.c), x, SPACES[kind])
    if kind == "poincare":
        return poincare.exp_origin(0.3 * x, c=0.7)
    return x


def probe_of(kind, space, rng, spread=0.3):
    """Return a float64 probe with perturbed parameters, as after some training."""
    probe = PROBES[kind](WIDTH, RANK, SPACES[space], rng).double()
    with torch.no_grad():
        for parameter in probe.parameters():
            noise = torch.randn(parameter.shape, generator=rng, dtype=torch.float64)
            parameter.add_(spread * noise)
    return probe


def every_pair(test):
    """Run a test for every probe on states of every space."""
    with_kinds = pytest.mark.parametrize("kind", KINDS)(test)
    return pytest.mark.parametrize("space", list(SPACES))(with_kinds)


def lorentz_linear(probe, layer, inner=False):
    """The project's own layer with the parameters of one layer of a probe."""
    names = ("inner_weight", "inner_bias", "inner_scale") if inner else ("weight", "bias", "scale")
    weight, bias, scale = (getattr(probe, name).values[layer] for name in names)
    module = LorentzLinear(weight.size(1), weight.size(0)).double()
    with torch.no_grad():
        module.weight.copy_(weight)
        module.bias.copy_(bias)
        module.log_scale.copy_(scale.flatten())
    return module


@pytest.mark.parametrize("space", list(SPACES))
def test_lorentz_probe_matches_the_paper(space, rng):
    probe, states = probe_of("lorentz", space, rng), states_of(space, rng)
    points, distances = probe.points(states), probe.distances(states)
    depths = probe.depths(states)
    origin = lorentz.origin(RANK, dtype=torch.float64)
    for layer in range(LAYERS):
        if space == "euclidean":
            q = lorentz.exp_origin(states[layer] @ probe.inner_weight.values[layer].T)
        else:
            point = lorentz_points(states[layer], SPACES[space][layer])
            q = lorentz_linear(probe, layer, inner=True)(point)
        p = lorentz_linear(probe, layer)(q)
        torch.testing.assert_close(points[layer], p)
        between = lorentz.squared_distance(p.unsqueeze(-2), p.unsqueeze(-3))
        torch.testing.assert_close(distances[layer], between, atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(depths[layer], lorentz.squared_distance(p, origin))
    torch.testing.assert_close(probe.lorentz_points(states), points)


@pytest.mark.parametrize("space", list(SPACES))
def test_poincare_probe_matches_geoopt(space, rng):
    probe, states = probe_of("poincare", space, rng, spread=0.1), states_of(space, rng)
    distances, depths = probe.distances(states), probe.depths(states)
    ball = geoopt.PoincareBall(c=1.0)
    for layer in range(LAYERS):
        flat = vectors(states[layer], SPACES[space][layer])
        # the ball's tangents are half as long as the distances from the origin
        inner = ball.expmap0(flat @ probe.inner_weight.values[layer].T / 2, project=False)
        p = ball.mobius_matvec(probe.weight.values[layer], inner, project=False)
        between = ball.dist(p.unsqueeze(-2), p.unsqueeze(-3)).square()
        torch.testing.assert_close(distances[layer], between, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(depths[layer], ball.dist0(p).square(), rtol=1e-6, atol=1e-9)
        points = probe.lorentz_points(states)[layer]
        torch.testing.assert_close(points, poincare.to_lorentz(p), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("space", list(SPACES))
def test_euclidean_probe_matches_hewitt_and_manning(space, rng):
    probe, states = probe_of("euclidean", space, rng), states_of(space, rng)
    distances, depths = probe.distances(states), probe.depths(states)
    for layer in range(LAYERS):
        mapped = vectors(states[layer], SPACES[space][layer]) @ probe.weight.values[layer].T
        between = (mapped.unsqueeze(-2) - mapped.unsqueeze(-3)).square().sum(-1)
        torch.testing.assert_close(distances[layer], between, atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(depths[layer], mapped.square().sum(-1))
    assert probe.lorentz_points(states) is None


@every_pair
def test_layers_share_no_parameter_and_a_subset_gives_what_all_give(kind, space, rng):
    probe, states = probe_of(kind, space, rng), states_of(space, rng)
    chosen = [2, 0]
    for predict in (probe.distances, probe.depths):
        torch.testing.assert_close(predict(states[chosen], chosen), predict(states)[chosen])
    (probe.distances(states)[1].sum() + probe.depths(states)[1].sum()).backward()
    for layer in range(LAYERS):
        grads = [p.grad for p in probe.parameters_of(layer)]
        assert all((grad is not None and bool(grad.any())) == (layer == 1) for grad in grads)


@every_pair
def test_padding_equal_words_and_far_states_are_finite_in_float32(kind, space, rng):
    probe, states = probe_of(kind, space, rng).float(), states_of(space, rng).float()
    states[:, 0, 3:] = 0
    states[:, 1, 1] = states[:, 1, 0]
    distances = probe.distances(states)
    assert bool((distances >= 0).all())
    (distances.sum() + probe.depths(states).sum()).backward()
    assert all(bool(p.grad.isfinite().all()) for p in probe.parameters())
    states = states_of(space, rng).float() * (1.0 if space == "poincare" else 1e4)
    assert bool(probe.distances(states).isfinite().all())
    points = probe.lorentz_points(states)
    if points is not None:
        assert lorentz.violation(points).max() < 1e-5


def test_bounds_change_only_lengths(rng):
    states = states_of("euclidean", rng)
    flat = PoincareProbe(WIDTH, RANK, SPACES["euclidean"], rng).double()
    far = flat.points(1e5 * states)
    torch.testing.assert_close(far.norm(dim=-1), torch.full_like(far[..., 0], LARGEST_RADIUS))
    near = flat.points(1e-3 * states)
    cosine = torch.cosine_similarity(near, far, dim=-1)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_pair
def test_a_word_is_at_distance_zero_from_itself(kind, space, dtype, rng):
    states = states_of(space, rng, words=40).to(dtype)
    made = PROBES[kind](WIDTH, 64, SPACES[space], rng).to(dtype)
    with torch.no_grad():
        for parameter in made.parameters():
            # far points, whose products round the most
            parameter.mul_(1.5)
    distances = made.distances(states)
    assert torch.equal(distances.diagonal(dim1=-2, dim2=-1), torch.zeros(LAYERS, 2, 40).to(dtype))
    others = distances[..., ~torch.eye(40, dtype=torch.bool)]
    assert (others > 0).all()
