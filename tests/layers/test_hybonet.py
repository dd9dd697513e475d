"""HyboNet's linear layer and attention against the formulas written out in NumPy."""

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.hybonet import RESIDUALS, LorentzAttention, LorentzLinear
from tests.geometry.helpers import CURVATURES, EXACT, points
from tests.layers.conftest import randomized
from tests.oracles import lorentz as oracle


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("mode", RESIDUALS)
@pytest.mark.parametrize("relu", [False, True], ids=["identity", "relu"])
def test_linear_matches_the_formula(relu, mode, c, rng):
    layer = randomized(LorentzLinear(6, 8, c=c, relu=relu, residual=mode).double(), rng)
    x, residual = points(rng, 5, 6, c=c), points(rng, 5, 8, c=c)
    got = layer(x, residual).detach().numpy()
    weight, bias, scale, *own = (p.detach().numpy() for p in layer.parameters())
    options = {"weight_of_own": np.exp(own[0])} if own else {}
    for i in range(5):
        h = np.maximum(x[i].numpy(), 0) if relu else x[i].numpy()
        expected = oracle.linear(h, weight, bias, scale[0], c, residual[i].numpy(), mode, **options)
        np.testing.assert_allclose(got[i], expected, **EXACT)


def test_fresh_layer_ignores_every_time_coordinate_of_its_input(rng):
    layer = LorentzLinear(12, 6, merged_heads=3)
    x = torch.randn(4, 12, generator=rng)
    changed = x.clone()
    changed[:, [0, 4, 8]] += 5
    assert torch.equal(layer(x), layer(changed))
    assert layer.weight[:, [1, 5, 9]].abs().min() > 0
    assert layer.weight.abs().max() <= 0.02
    # times are between 1.1 and exp(2.3) + 1.1, at first in the middle
    torch.testing.assert_close(
        layer(x)[:, 0], torch.full((4,), np.exp(2.3) / 2 + 1.1).float(), rtol=0.1, atol=0
    )


def test_zero_space_gives_the_origin_with_a_finite_gradient():
    layer = LorentzLinear(4, 6, c=4.0)
    torch.nn.init.zeros_(layer.weight)
    x = torch.ones(3, 4, requires_grad=True)
    y = layer(x)
    y.square().sum().backward()
    torch.testing.assert_close(y, lorentz.origin(6, c=4.0).expand(3, 6))
    assert all(torch.isfinite(p.grad).all() for p in (x, *layer.parameters()))


@pytest.mark.parametrize("form", RESIDUALS)
def test_gradients_of_every_residual_form_match_finite_differences(form, rng):
    layer = randomized(LorentzLinear(5, 6, residual=form).double(), rng)
    x, residual = points(rng, 3, 5).requires_grad_(), points(rng, 3, 6).requires_grad_()

    def run(x, residual, *parameters):
        named = dict(zip(dict(layer.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(layer, named, (x, residual))

    assert torch.autograd.gradcheck(run, (x, residual, *layer.parameters()))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("c", CURVATURES)
def test_attention_matches_the_formulas_from_input_to_output(c, causal, rng):
    options = {"causal": True} if causal else {"memory_width": 6}
    layer = randomized(LorentzAttention(8, 2, c=c, **options).double(), rng)
    x = points(rng, 1, 4, 8, c=c)
    memory = None if causal else points(rng, 1, 5, 6, c=c)
    got = layer(x, memory)[0].detach().numpy()

    def heads(linear, inputs, projection):
        weight, bias, scale = (p.detach().numpy() for p in linear.parameters())
        w, b = weight.reshape(-1, 2, 4, weight.shape[1])[projection], bias.reshape(-1, 2, 4)
        given = [(w[h], b[projection][h], scale[projection], c) for h in range(2)]
        return np.array([[oracle.linear(p.numpy(), *own) for own in given] for p in inputs[0]])

    maps = [("qkv", x, i) for i in range(3)]
    if memory is not None:
        maps = [("q", x, 0), ("kv", memory, 0), ("kv", memory, 1)]
    q, k, v = (heads(getattr(layer, name), inputs, i) for name, inputs, i in maps)
    given = layer.tau.item(), c, np.tri(4, dtype=bool) if causal else None
    mixed = [oracle.attention(q[:, h], k[:, h], v[:, h], *given) for h in range(2)]
    weight, bias, scale = (p.detach().numpy() for p in layer.out.parameters())
    for i in range(4):
        joined = np.concatenate([mixed[0][i], mixed[1][i]])
        expected = oracle.linear(joined, weight, bias, scale[0], c, x[0, i].numpy())
        np.testing.assert_allclose(got[i], expected, rtol=1e-11, atol=1e-11)


def test_centroid_of_equal_far_points_stays_finite_in_float32(rng):
    far = points(rng, 1, 4, 1, 16, radius=9.9).float().expand(1, 4, 20, 16)
    query = lorentz.flip_time(far) / 4
    out = LorentzAttention(64, 4).mix(query, far, far, allowed=None, is_causal=False)
    assert torch.isfinite(out).all()
