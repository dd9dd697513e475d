"""Lorentz attention against a loop over queries, its precision and its dropout."""

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.hybonet import LorentzAttention
from tests.geometry.helpers import CURVATURES, EXACT, points
from tests.layers.conftest import randomized
from tests.oracles import lorentz as oracle


def heads(rng, *shape, c=1.0, radius=2.0):
    return points(rng, *shape, c=c, radius=radius)


def scaled(layer, query):
    """Queries as :meth:`LorentzAttention.mix` takes them."""
    return (lorentz.flip_time(query) * 2 / layer.tau).detach()


@pytest.mark.parametrize("c", CURVATURES)
def test_mix_matches_the_loop_over_queries(c, rng):
    layer = LorentzAttention(8, 2, c=c).double()
    torch.nn.init.constant_(layer.tau, 1.7)
    q, k, v = (heads(rng, 2, 3, n, 5, c=c) for n in (4, 6, 6))
    allowed = torch.rand(2, 1, 4, 6, generator=rng) < 0.7
    allowed[..., 0] = True
    got = layer.mix(scaled(layer, q), k, v, allowed=allowed, is_causal=False).detach().numpy()
    for b in range(2):
        for h in range(3):
            expected = oracle.attention(
                *(t[b, h].numpy() for t in (q, k, v)), 1.7, c, allowed[b, 0].numpy()
            )
            np.testing.assert_allclose(got[b, h], expected, **EXACT)


def test_attention_matches_the_formulas_from_input_to_output(rng):
    layer = randomized(LorentzAttention(8, 2, memory_width=6).double(), rng)
    x, memory = points(rng, 1, 3, 8), points(rng, 1, 5, 6)
    got = layer(x, memory)[0].detach().numpy()

    def project(linear, point, projection):
        weight, bias, scale = (p.detach().numpy() for p in linear.parameters())
        w, b = weight.reshape(-1, 2, 4, weight.shape[1])[projection], bias.reshape(-1, 2, 4)
        return [
            oracle.linear(point.numpy(), w[h], b[projection][h], scale[projection], 1.0)
            for h in range(2)
        ]

    q = np.array([project(layer.q, p, 0) for p in x[0]])
    k = np.array([project(layer.kv, p, 0) for p in memory[0]])
    v = np.array([project(layer.kv, p, 1) for p in memory[0]])
    mixed = [oracle.attention(q[:, h], k[:, h], v[:, h], layer.tau.item(), 1.0) for h in range(2)]
    weight, bias, scale = (p.detach().numpy() for p in layer.out.parameters())
    for i in range(3):
        joined = np.concatenate([mixed[0][i], mixed[1][i]])
        expected = oracle.linear(joined, weight, bias, scale[0], 1.0, x[0, i].numpy())
        np.testing.assert_allclose(got[i], expected, rtol=1e-11, atol=1e-11)


def test_centroid_of_equal_far_points_stays_finite_in_float32(rng):
    layer = LorentzAttention(64, 4)
    far = heads(rng, 1, 4, 1, 16, radius=9.9).float().expand(1, 4, 20, 16)
    out = layer.mix(scaled(layer, far), far, far, allowed=None, is_causal=False)
    assert torch.isfinite(out).all()


def test_autocast_keeps_heads_on_the_hyperboloid(rng):
    layer = LorentzAttention(64, 4)
    q, k, v = (heads(rng, 2, 4, 9, 16, radius=3.0).float() for _ in range(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer.mix(scaled(layer, q), k, v, allowed=None, is_causal=False)
    assert lorentz.violation(out).max() < 2e-6
    torch.testing.assert_close(
        out, layer.mix(scaled(layer, q), k, v, allowed=None, is_causal=False)
    )
