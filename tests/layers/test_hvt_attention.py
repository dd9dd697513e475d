"""Distance attention on the Poincare ball: weights, aggregation, heads, precision."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.layers.hvt_attention import PoincareAttention
from tests.geometry.helpers import CURVATURES, EXACT_IN_BALL, ball
from tests.layers.conftest import randomized
from tests.oracles import poincare as oracle

pytestmark = pytest.mark.usefixtures("fresh_weights")

AGGREGATIONS = ["midpoint", "tangent"]


def attention(*args, rng=None, **options):
    layer = PoincareAttention(*args, **options).double()
    return layer if rng is None else randomized(layer, rng)


def lifted(layer, points):
    return poincare.lift_tangent(poincare.log_origin(points, c=layer.c), c=layer.c)


def value_of(layer, points):
    if layer.aggregation == "midpoint":
        return lifted(layer, points)
    return poincare.log_origin(points, c=layer.c)


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_mix_matches_the_loop_over_queries(aggregation, c, rng):
    layer = attention(15, 3, c=c, aggregation=aggregation)
    torch.nn.init.uniform_(layer.raw_alpha)
    q, k, v = (ball(rng, 2, 3, n, 5, c=c) for n in (4, 6, 6))
    allowed = torch.rand(2, 1, 4, 6, generator=rng) < 0.7
    allowed[..., 0] = True
    mixed = layer.mix(
        lifted(layer, q), lifted(layer, k), value_of(layer, v), allowed=allowed, is_causal=False
    )
    got = poincare.exp_origin(mixed, c=c).detach().numpy()
    alpha = F.softplus(layer.raw_alpha).tolist()
    aggregate = {"midpoint": oracle.midpoint, "tangent": oracle.tangent_mean}[aggregation]
    for b in range(2):
        for h in range(3):
            heads = (t[b, h].numpy() for t in (q, k, v))
            expected = oracle.attention(*heads, alpha[h], c, aggregate, allowed[b, 0].numpy())
            np.testing.assert_allclose(got[b, h], expected, **EXACT_IN_BALL)


def test_attention_matches_the_formulas_from_input_to_output(rng):
    layer = attention(8, 2, memory_width=6, rng=rng)
    x, memory = ball(rng, 1, 3, 8), ball(rng, 1, 5, 6)
    got = layer(x, memory)[0].detach().numpy()

    def heads(linear, points, projection):
        weight, bias = (p.detach().numpy() for p in linear.parameters())
        weight = weight.reshape(-1, 8, weight.shape[1])[projection]
        whole = [oracle.linear(p.numpy(), weight, bias[projection], 1.0) for p in points]
        tangents = [np.split(oracle.log_origin(p, 1.0), 2) for p in whole]
        return [[oracle.exp_origin(t[h], 1.0) for t in tangents] for h in range(2)]

    q, k, v = heads(layer.q, x[0], 0), heads(layer.kv, memory[0], 0), heads(layer.kv, memory[0], 1)
    alpha = F.softplus(layer.raw_alpha).tolist()
    mixed = [oracle.attention(q[h], k[h], v[h], alpha[h], 1.0, oracle.midpoint) for h in range(2)]
    weight, bias = (p.detach().numpy() for p in layer.out.parameters())
    for i in range(3):
        joined = np.concatenate([oracle.log_origin(mixed[h][i], 1.0) for h in range(2)])
        out = oracle.linear(oracle.exp_origin(joined, 1.0), weight, bias, 1.0)
        update = torch.from_numpy(oracle.log_origin(out, 1.0))
        expected = layer.residual(x[0, i], update, torch.zeros_like(update))
        np.testing.assert_allclose(got[i], expected.detach(), **EXACT_IN_BALL)


def test_merging_split_heads_restores_the_point(rng):
    layer = attention(8, 2)
    x = ball(rng, 2, 5, 8, radius=6.0)
    with torch.no_grad():
        for weight in (layer.qkv.weight[16:], layer.out.weight):
            weight.copy_(torch.eye(8))
    *_, value = layer.project(x)
    heads = poincare.centroid_tangent(value)
    merged = layer.out(poincare.exp_origin(heads.transpose(1, 2).flatten(2)))
    torch.testing.assert_close(merged, x, **EXACT_IN_BALL)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_dropconnect_drops_attention_weights_only_while_training(aggregation, rng):
    layer = PoincareAttention(8, 2, attention_dropout=0.5, aggregation=aggregation)
    x = ball(rng, 2, 5, 8, dtype=torch.float32)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))
    whole = PoincareAttention(8, 2, aggregation=aggregation)
    whole.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x), whole(x))


def test_zeros_and_clamped_points_have_finite_values_and_gradients(rng):
    layer = randomized(PoincareAttention(8, 2), rng)
    edge = poincare.clamp(torch.randn(1, 4, 8, generator=rng) * 9)
    x = torch.cat([torch.zeros(1, 2, 8), edge, edge, -edge], dim=1).requires_grad_()
    out = layer(x)
    out.square().sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(t.grad).all() for t in (x, *layer.parameters()))


def test_unknown_aggregation_is_refused_by_name():
    with pytest.raises(ValueError, match="one of midpoint, tangent, got 'sum'"):
        PoincareAttention(8, 2, aggregation="sum")
