"""HyboNet's blocks on spheres: the formulas written out, and their likeness to HyboNet."""

import math

import numpy as np
import pytest
import torch

from hyptrans.layers.hybonet import LorentzLinear
from hyptrans.layers.sphere import (
    SphereAttention,
    SphereFeedForward,
    SphereLinear,
    SphereLogits,
    SpherePositions,
)
from tests.layers.conftest import randomized, vectors


def linear(x, weight, bias, log_radius, residual=0.0):
    v = weight @ x + bias + residual
    return math.exp(log_radius) * v / np.linalg.norm(v)


def numbers(layer):
    return [p.detach().numpy() for p in (layer.weight, layer.bias, layer.log_radius)]


@pytest.mark.parametrize("relu", [False, True], ids=["identity", "relu"])
def test_linear_is_a_product_plus_residual_rescaled(relu, rng):
    layer = randomized(SphereLinear(6, 8, relu=relu).double(), rng)
    x, residual = vectors(rng, 5, 6), vectors(rng, 5, 8)
    got = layer(x, residual).detach().numpy()
    weight, bias, radius = numbers(layer)
    for i in range(5):
        h = np.maximum(x[i].numpy(), 0) if relu else x[i].numpy()
        wanted = linear(h, weight, bias, radius.item(), residual[i].numpy())
        np.testing.assert_allclose(got[i], wanted, rtol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-9])
def test_gradients_at_the_zero_vector_are_bounded_like_hybonets(size):
    gradients = {}
    for kind in (SphereLinear, LorentzLinear):
        torch.manual_seed(1)
        layer = kind(16, 16)
        layer(torch.full((3, 16), size)).sum().backward()
        gradients[kind] = layer.bias.grad.abs().max()
    assert gradients[SphereLinear] < 10 * gradients[LorentzLinear]
    assert gradients[LorentzLinear] < 1e5


def test_autocast_changes_neither_logits_nor_what_attention_mixes(rng):
    torch.manual_seed(0)
    logits, attention = SphereLogits(torch.nn.Embedding(50, 64)), SphereAttention(64, 4)
    x = torch.randn(2, 9, 64, generator=rng)
    heads = attention.project(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = logits(x), attention.mix(*heads, allowed=None, is_causal=True)
    assert torch.equal(half[0], logits(x))
    assert torch.equal(half[1], attention.mix(*heads, allowed=None, is_causal=True))


def test_attention_averages_values_by_dot_products(rng):
    layer = randomized(SphereAttention(8, 2, causal=True).double(), rng)
    x = vectors(rng, 1, 4, 8)
    weight, bias, radius = numbers(layer.qkv)
    made = np.zeros((3, 4, 2, 4))
    for p in range(3):
        for t in range(4):
            for h in range(2):
                rows = slice(p * 8 + h * 4, p * 8 + h * 4 + 4)
                given = weight[rows], bias[rows], radius[p].item()
                made[p, t, h] = linear(x[0, t].numpy(), *given)
    heads = np.zeros((4, 2, 4))
    for t in range(4):
        for h in range(2):
            scores = [2 * made[0, t, h] @ made[1, s, h] / layer.tau.item() for s in range(t + 1)]
            weights = np.exp(scores) / np.exp(scores).sum()
            heads[t, h] = sum(w * made[2, s, h] for s, w in enumerate(weights))
    weight, bias, radius = numbers(layer.out)
    for t in range(4):
        wanted = linear(heads[t].reshape(8), weight, bias, radius.item(), x[0, t].numpy())
        np.testing.assert_allclose(layer(x)[0, t].detach(), wanted, rtol=1e-9)


def test_feed_forward_and_positions_are_linear_maps_with_their_residuals(rng):
    block = randomized(SphereFeedForward(6, 10).double(), rng)
    x = vectors(rng, 2, 3, 6)
    torch.testing.assert_close(block(x), block.contract(block.expand(x), x))
    positions = randomized(SpherePositions(6, 9).double(), rng)
    at = torch.tensor([[0, 1, 2], [0, 0, 8]])
    wanted = positions.linear(x[1, 2], positions.vectors(at)[1, 2])
    torch.testing.assert_close(positions(x, at)[1, 2], wanted)


def test_logits_are_twice_the_dot_products_plus_a_bias(rng):
    table = torch.nn.Embedding(11, 6).double()
    layer = randomized(SphereLogits(table).double(), rng)
    x = vectors(rng, 3, 6)
    torch.testing.assert_close(layer(x), 2 * x @ table.weight.t() + layer.bias)
