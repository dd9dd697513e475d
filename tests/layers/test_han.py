"""Hyperbolic attention against the Klein-coordinate formulas, its precision and limits."""

import math

import numpy as np
import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.klein import (
    Arcosh,
    cartesian_points,
    distances,
    midpoint,
    polar_points,
)
from hyptrans.layers.han import HyperbolicAttention
from tests.geometry.helpers import EXACT_IN_BALL
from tests.layers.conftest import hyperbolic_attention, vectors
from tests.oracles import han as oracle

WIDE = 20.0

both_coordinates = pytest.mark.parametrize("coordinates", ["polar", "cartesian"])
both_weights = pytest.mark.parametrize("weights", ["softmax", "sigmoid"])


def numbers(rng, *shape, coordinates="polar", radius=2.0):
    """Random numbers of heads whose points have radii spread evenly up to ``radius``."""
    v = torch.randn(*shape, generator=rng, dtype=torch.float64)
    r = radius * torch.rand(*shape[:-1], 1, generator=rng, dtype=torch.float64)
    if coordinates == "polar":
        sign = torch.randint(0, 2, r.shape, generator=rng) * 2 - 1
        # the bound at WIDE moves points to these radii
        return torch.cat([v, WIDE * (r / WIDE).atanh() * sign], dim=-1)
    return v / v.norm(dim=-1, keepdim=True) * r.sinh()


def to_points(x, coordinates, max_radius=WIDE):
    return (polar_points if coordinates == "polar" else cartesian_points)(x, max_radius)


def points(rng, *shape, radius=2.0):
    return to_points(numbers(rng, *shape, radius=radius), "polar")


# points


@pytest.mark.parametrize("radius", [0.1, 3.0, 8.0])
@pytest.mark.parametrize("max_radius", [6.0, WIDE])
@both_coordinates
def test_points_have_the_klein_coordinates_of_the_paper(coordinates, max_radius, radius, rng):
    x = numbers(rng, 200, 5, coordinates=coordinates, radius=radius)
    got = to_points(x, coordinates, max_radius)
    # the 1e-6 that a direction's length is divided with moves a point by as much
    klein = getattr(oracle, coordinates)(x.numpy(), max_radius)
    tolerance = 2e-5 if coordinates == "polar" else 1e-12
    np.testing.assert_allclose(got[:, 1:] / got[:, :1], klein, rtol=tolerance, atol=1e-12)
    assert lorentz.violation(got).max() < 1e-14


@both_coordinates
def test_zeros_map_to_the_origin_with_a_finite_gradient(coordinates):
    zero = torch.zeros(3, 5, requires_grad=True)
    got = to_points(zero, coordinates, 6.0)
    assert torch.equal(got, lorentz.origin(got.size(-1)).expand_as(got))
    got.sum().backward()
    assert torch.isfinite(zero.grad).all()


# distances and midpoints


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_arcosh_keeps_its_digits_near_one(dtype):
    u = 2.0 ** -torch.arange(0, 23, dtype=dtype)
    exact = [math.log1p(v + math.sqrt(v * (v + 2))) for v in u.tolist()]
    got = Arcosh.apply(1 + u)
    expected = torch.tensor(exact, dtype=torch.float64)
    torch.testing.assert_close(got.double(), expected, rtol=4 * torch.finfo(dtype).eps, atol=0)


# attention


@pytest.mark.parametrize("radius", [1.0, 8.0])
@both_weights
@both_coordinates
def test_mix_matches_the_klein_coordinate_formula(coordinates, weights, radius, rng):
    layer = hyperbolic_attention(rng, weights=weights)
    q, k, v = (
        to_points(numbers(rng, 2, 2, n, 5, coordinates=coordinates, radius=radius), coordinates)
        for n in (4, 6, 6)
    )
    allowed = torch.rand(2, 1, 4, 6, generator=rng) < 0.7
    allowed[..., 0] = True
    got = layer.mix(q, k, v, allowed=allowed, is_causal=False).detach()
    c = [0.0, 0.0] if layer.c is None else layer.c.tolist()
    for b in range(2):
        for h in range(2):
            klein = [(p[b, h, :, 1:] / p[b, h, :, :1]).numpy() for p in (q, k, v)]
            beta = F.softplus(layer.raw_beta[h]).item()
            expected = oracle.attention(*klein, beta, c[h], weights, allowed[b, 0].numpy())
            np.testing.assert_allclose(got[b, h], expected, **EXACT_IN_BALL)


@both_weights
@both_coordinates
def test_attention_matches_the_formulas_from_input_to_output(coordinates, weights, rng):
    options = {"coordinates": coordinates, "weights": weights, "max_radius": 3.0}
    layer = hyperbolic_attention(rng, memory_width=6, **options)
    x, memory = vectors(rng, 1, 3, 8), vectors(rng, 1, 5, 6)
    place = getattr(oracle, coordinates)

    def project(linear, inputs, projections):
        made = (inputs[0] @ linear.weight.T + linear.bias).detach().numpy()
        return place(made.reshape(len(made), projections, 2, -1), 3.0)

    q, kv = project(layer.q, x, 1), project(layer.kv, memory, 2)
    c = [0.0, 0.0] if layer.c is None else layer.c.tolist()
    beta = F.softplus(layer.raw_beta).tolist()
    heads = [
        oracle.attention(q[:, 0, h], kv[:, 0, h], kv[:, 1, h], beta[h], c[h], weights)
        for h in range(2)
    ]
    out = torch.from_numpy(np.concatenate(heads, axis=1))
    expected = layer.residual.norm(x[0] + layer.out(out))
    # directions: see the test of points
    tolerance = 1e-4 if coordinates == "polar" else 1e-9
    torch.testing.assert_close(layer(x, memory)[0], expected, rtol=tolerance, atol=tolerance)


def test_sigmoid_weights_do_not_underflow(rng):
    layer = hyperbolic_attention(rng, weights="sigmoid").float()
    torch.nn.init.constant_(layer.raw_beta, 60.0)
    q, k, v = (points(rng, 1, 2, 7, 4, radius=5.0).float() for _ in range(3))
    score = -(layer.beta * distances(q, k) + layer.c[:, None, None])
    assert score.sigmoid().amax(-1).min() == 0
    got = layer.mix(q, k, v, allowed=None, is_causal=False)
    torch.testing.assert_close(got, midpoint(score.softmax(-1), v))


@pytest.mark.parametrize("radius", [0.0, 1.0, 6.0])
@both_weights
def test_equal_points_give_finite_values_and_gradients(weights, radius, rng):
    layer = HyperbolicAttention(32, 2, weights=weights)
    x = numbers(rng, 1, 2, 1, 16, radius=1.0).float()
    x[..., -1] = radius
    x = x.expand(1, 2, 9, 17).clone().requires_grad_()
    same = polar_points(x, WIDE)
    out = layer.mix(same, same, same, allowed=None, is_causal=False)
    out.square().sum().backward()
    expected = (same[..., 1:] / same[..., :1]).detach()
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-6)
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in (layer.raw_beta, layer.c) if p is not None)


# dropout and precision


def test_a_query_without_weights_gives_zero_and_finite_gradients(rng):
    torch.manual_seed(0)
    layer = HyperbolicAttention(8, 2, attention_dropout=0.9, causal=True)
    x = numbers(rng, 20, 2, 3, 4).float().requires_grad_()
    p = polar_points(x, 6.0)
    out = layer.mix(p, p, p, allowed=None, is_causal=True)
    dropped = (out == 0).all(-1)
    assert 0.7 < dropped[..., 0].float().mean() < 1
    out.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(layer.raw_beta.grad).all()


# options


@pytest.mark.parametrize("memory_width", [None, 64, 32])
def test_initial_weights_have_the_scale_of_fairseqs(memory_width):
    torch.manual_seed(0)
    ours = HyperbolicAttention(64, 4, coordinates="cartesian", memory_width=memory_width)
    theirs = MultiheadAttention(64, 4, kdim=memory_width, vdim=memory_width)
    maps = [theirs.q_proj, theirs.k_proj, theirs.v_proj]
    if memory_width is None:
        blocks = list(ours.qkv.weight.chunk(3))
    else:
        blocks = [ours.q.weight, *ours.kv.weight.chunk(2)]
    for block, linear in zip([*blocks, ours.out.weight], [*maps, theirs.out_proj], strict=True):
        assert block.abs().max().item() == pytest.approx(linear.weight.abs().max().item(), rel=0.01)
    assert ours.out.bias.abs().max() == theirs.out_proj.bias.abs().max() == 0
