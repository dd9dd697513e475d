"""Hypformer's attentions: the formulas from input to output, curvatures, the state's size."""

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.attention import State
from hyptrans.layers.curvature import Curvature
from hyptrans.layers.hypformer_attention import LinearAttention, SoftmaxAttention
from tests.geometry.helpers import EXACT, points
from tests.layers.conftest import (
    CHANGES,
    NORMED,
    arrays,
    randomized,
)
from tests.layers.conftest import hypformer_attention as attention
from tests.oracles import hypformer as oracle
from tests.oracles import lorentz as lorentz_oracle

KINDS = [LinearAttention, SoftmaxAttention]


every_kind = pytest.mark.parametrize("kind", KINDS, ids=["linear", "softmax"])


def heads_of(point, weight, bias, c_in, c_out):
    """The two heads' space coordinates of one map."""
    return oracle.htc(point.numpy(), weight, bias, c_in, c_out).reshape(2, -1)


def expected_output(layer, x, memory, c_in, c_out, c_memory, mix):
    """One sentence through the formulas; ``mix`` gives a head's output for all positions."""
    p = arrays(layer)
    if memory is None:
        weight, bias = np.split(p["qkv.weight"], 3), np.split(p["qkv.bias"], 3)
        source, c_source = x, c_in
    else:
        weight = [p["q.weight"], *np.split(p["kv.weight"], 2)]
        bias = [p["q.bias"], *np.split(p["kv.bias"], 2)]
        source, c_source = memory, c_memory
    q = np.array([heads_of(point, weight[0], bias[0], c_in, c_out) for point in x])
    k, v = (
        np.array([heads_of(point, weight[i], bias[i], c_source, c_out) for point in source])
        for i in (1, 2)
    )
    mixed = np.stack([mix(p, h, q[:, h], k[:, h], v[:, h]) for h in range(2)], axis=1)
    out = []
    for i in range(len(x)):
        joined = lorentz_oracle.lift(mixed[i].reshape(-1), c_out)
        f = oracle.htc(joined, p["out.weight"], p["out.bias"], c_out, c_out)
        norm = (p["norm.weight"], p["norm.bias"])
        out.append(oracle.residual_norm(x[i].numpy(), f, *norm, c_in, c_out))
    return np.array(out)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("power", [2.0, 3.0])
@pytest.mark.parametrize(("c_in", "c_out"), CHANGES)
def test_linear_self_attention_matches_the_formulas(c_in, c_out, power, causal, exact_norm, rng):
    layer = attention(LinearAttention, rng, c_in=c_in, c_out=c_out, power=power, causal=causal)
    x = points(rng, 1, 5, 8, c=c_in)

    def mix(p, h, q, k, v):
        q, k = ([oracle.focus(row, p["scale"][h, 0], power) for row in t] for t in (q, k))
        return oracle.linear_attention(q, k, v, lambda i, j: j <= i or not causal) + v @ p["psi"][h]

    expected = expected_output(layer, x[0], None, c_in, c_out, None, mix)
    np.testing.assert_allclose(layer(x)[0].detach(), expected, **NORMED)


def test_linear_cross_attention_matches_the_formulas(exact_norm, rng):
    layer = attention(LinearAttention, rng, c_in=3.0, c_out=0.5, c_memory=2.0)
    x, memory = points(rng, 1, 3, 8, c=3.0), points(rng, 1, 5, 6, c=2.0)

    def mix(p, h, q, k, v):
        features, keys = ([oracle.focus(row, p["scale"][h, 0], 2.0) for row in t] for t in (q, k))
        return oracle.linear_attention(features, keys, v, lambda i, j: True) + q @ p["psi"][h]

    expected = expected_output(layer, x[0], memory[0], 3.0, 0.5, 2.0, mix)
    np.testing.assert_allclose(layer(x, memory)[0].detach(), expected, **NORMED)


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_attention_matches_the_formulas(causal, exact_norm, rng):
    layer = attention(SoftmaxAttention, rng, c_in=3.0, c_out=0.5, causal=causal)
    x = points(rng, 1, 5, 8, c=3.0)
    allowed = np.tril(np.ones((5, 5), bool)) if causal else np.ones((5, 5), bool)

    def mix(p, h, *spaces):
        q, k, v = (lorentz_oracle.lift(t, 0.5) for t in spaces)
        return lorentz_oracle.attention(q, k, v, p["tau"], 0.5, allowed)[:, 1:]

    expected = expected_output(layer, x[0], None, 3.0, 0.5, None, mix)
    np.testing.assert_allclose(layer(x)[0].detach(), expected, **NORMED)


def test_linear_attention_state_has_constant_size(rng):
    layer = attention(LinearAttention, rng, causal=True)
    x = points(rng, 3, 72, 8)
    state = State()
    parts = [layer(part, state=state) for part in x.split([70, 1, 1], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), **EXACT)
    assert [tuple(t.shape) for t in state.kept] == [(3, 2, 4, 4), (3, 2, 4)]


@every_kind
@pytest.mark.parametrize("cross", [False, True])
def test_gradients_agree_with_finite_differences_and_reach_every_curvature(cross, kind, rng):
    curvatures = {"curvature": Curvature(0.7), "input_curvature": Curvature(2.0)}
    if cross:
        curvatures["memory_curvature"] = Curvature(1.5)
    options = {"memory_width": 4} if cross else {"causal": True}
    layer = kind(6, 2, **curvatures, gain=1.0, **options).double()
    layer = randomized(layer, rng)
    x, memory = points(rng, 1, 3, 6).requires_grad_(), points(rng, 1, 4, 4) if cross else None
    raws = [c.double().raw for c in curvatures.values()]
    assert torch.autograd.gradcheck(
        lambda x, *_: layer(x, memory), (x, *raws, *layer.parameters()), atol=1e-4
    )
    layer(x, memory).square().sum().backward()
    assert all(raw.grad.abs() > 1e-6 for raw in raws)


def test_autocast_changes_neither_features_nor_sums(rng):
    layer = attention(LinearAttention, rng, causal=True).float()
    q, k, v = (torch.randn(2, 2, 90, 4, generator=rng) for _ in range(3))
    expected = layer.mix(q, k, v, allowed=None, is_causal=True)
    x = points(rng, 2, 90, 8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer.mix(q, k, v, allowed=None, is_causal=True), expected)
        assert lorentz.violation(layer(x)).max() < 2e-6


def test_attention_dropout_acts_on_map_inputs_and_keeps_points(rng):
    layer = attention(LinearAttention, rng, attention_dropout=0.5, c_in=2.0)
    x = points(rng, 2, 50, 8, c=2.0)
    seen = []
    layer.qkv.register_forward_hook(lambda _module, arguments, _out: seen.append(arguments[0]))
    layer(x)
    layer.eval()(x)
    assert 0.35 < (seen[0][..., 1:] == 0).double().mean() < 0.65
    assert lorentz.violation(seen[0], c=2.0).max() < 1e-12
    assert torch.equal(seen[1], x)
