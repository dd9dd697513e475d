"""Distance attention on the Poincare ball: the formulas, dropout, points at the border."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from hyptrans.geometry import poincare
from hyptrans.layers.hvt import PoincareFeedForward
from hyptrans.layers.hvt_attention import PoincareAttention
from tests.geometry.helpers import CURVATURES, EXACT_IN_BALL, ball
from tests.layers.conftest import randomized
from tests.oracles import poincare as oracle

pytestmark = pytest.mark.usefixtures("fresh_weights")

AGGREGATIONS = {"midpoint": oracle.midpoint, "tangent": oracle.tangent_mean}


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_matches_the_formulas_from_input_to_output(causal, aggregation, c, rng):
    options = {"causal": True} if causal else {"memory_width": 6}
    layer = PoincareAttention(8, 2, c=c, aggregation=aggregation, **options)
    layer = randomized(layer.double(), rng)
    x = ball(rng, 1, 4, 8, c=c)
    memory = None if causal else ball(rng, 1, 5, 6, c=c)
    got = layer(x, memory)[0].detach().numpy()

    def heads(linear, points, projection):
        weight, bias = (p.detach().numpy() for p in linear.parameters())
        weight = weight.reshape(-1, 8, weight.shape[1])[projection]
        whole = [oracle.linear(p.numpy(), weight, bias[projection], c) for p in points]
        tangents = [np.split(oracle.log_origin(p, c), 2) for p in whole]
        return [[oracle.exp_origin(t[h], c) for t in tangents] for h in range(2)]

    maps = [("qkv", x, i) for i in range(3)]
    if memory is not None:
        maps = [("q", x, 0), ("kv", memory, 0), ("kv", memory, 1)]
    q, k, v = (heads(getattr(layer, name), points[0], i) for name, points, i in maps)
    allowed = np.tri(4, dtype=bool) if causal else None
    alpha = F.softplus(layer.raw_alpha).tolist()
    given = c, AGGREGATIONS[aggregation], allowed
    mixed = [oracle.attention(q[h], k[h], v[h], alpha[h], *given) for h in range(2)]
    weight, bias = (p.detach().numpy() for p in layer.out.parameters())
    for i in range(4):
        joined = np.concatenate([oracle.log_origin(mixed[h][i], c) for h in range(2)])
        out = oracle.linear(oracle.exp_origin(joined, c), weight, bias, c)
        update = torch.from_numpy(oracle.log_origin(out, c))
        expected = layer.residual(x[0, i], update, torch.zeros_like(update))
        np.testing.assert_allclose(got[i], expected.detach(), **EXACT_IN_BALL)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_dropconnect_drops_attention_weights_only_while_training(aggregation, rng):
    layer = PoincareAttention(8, 2, attention_dropout=0.5, aggregation=aggregation)
    x = ball(rng, 2, 5, 8, dtype=torch.float32)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    whole = PoincareAttention(8, 2, aggregation=aggregation)
    whole.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x), whole(x))


@pytest.mark.parametrize("kind", [PoincareAttention, PoincareFeedForward])
def test_zeros_and_clamped_points_have_finite_values_and_gradients(kind, rng):
    layer = randomized(kind(8, 2), rng)
    edge = poincare.clamp(torch.randn(1, 4, 8, generator=rng) * 9)
    x = torch.cat([torch.zeros(1, 2, 8), edge, edge, -edge, edge * 1e-8], dim=1).requires_grad_()
    out = layer(x)
    out.square().sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(t.grad).all() for t in (x, *layer.parameters()))
