"""Lorentz attention against a loop over queries, and its masks and decoding state."""

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.decoding_state import State
from hyptrans.layers.hybonet import LorentzAttention
from tests.geometry.test_lorentz import CURVATURES, EXACT, points
from tests.layers.test_hybonet_linear import randomized
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


def test_temperature_starts_at_the_square_root_of_the_width():
    assert LorentzAttention(64, 4).tau.item() == pytest.approx(8.0)


@pytest.mark.parametrize(("radius", "tolerance"), [(1.7, 1e-5), (3.0, 1e-4)])
def test_float32_stays_near_float64(radius, tolerance, rng):
    layer = LorentzAttention(64, 4).double()
    q, k, v = (heads(rng, 2, 4, 50, 16, radius=radius) for _ in range(3))
    expected = layer.mix(scaled(layer, q), k, v, allowed=None, is_causal=True)
    q = scaled(layer, q).float()
    got = layer.float().mix(q, k.float(), v.float(), allowed=None, is_causal=True)
    assert (got - expected).abs().max() < tolerance * expected.abs().max()


def test_centroid_of_equal_far_points_stays_finite_in_float32(rng):
    layer = LorentzAttention(64, 4)
    far = heads(rng, 1, 4, 1, 16, radius=9.9).float().expand(1, 4, 20, 16)
    out = layer.mix(scaled(layer, far), far, far, allowed=None, is_causal=False)
    assert torch.isfinite(out).all()


def test_no_gradient_comes_from_the_future(rng):
    layer = randomized(LorentzAttention(8, 2, causal=True).double(), rng)
    x = points(rng, 1, 6, 8).requires_grad_()
    layer(x)[0, 2].sum().backward()
    assert x.grad[0, 3:].abs().max() == 0
    assert x.grad[0, :3].abs().min() > 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_no_real_position_and_gives_finite_gradients(causal, side, rng):
    layer = randomized(LorentzAttention(8, 2, causal=causal).double(), rng)
    x, noise = points(rng, 1, 4, 8), points(rng, 1, 3, 8)
    padded = torch.cat([noise, x] if side == "left" else [x, noise], dim=1).requires_grad_()
    real = slice(3, 7) if side == "left" else slice(0, 4)
    padding = torch.ones(1, 7, dtype=torch.bool)
    padding[:, real] = False
    out = layer(padded, padding=padding)
    torch.testing.assert_close(out[:, real], layer(x), **EXACT)
    out.sum().backward()
    assert torch.isfinite(padded.grad).all()


def test_steps_with_a_state_equal_the_whole_sequence(rng):
    layer = randomized(LorentzAttention(8, 2, causal=True).double(), rng)
    x = points(rng, 3, 5, 8)
    state = State()
    steps = [layer(x[:, i : i + 1], state=state) for i in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), layer(x), **EXACT)
    assert state.kept.places.shape == (3, 5)


def test_cross_attention_projects_the_memory_once(rng):
    layer = LorentzAttention(8, 2, memory_width=8).double()
    x, memory = points(rng, 2, 1, 8), points(rng, 2, 5, 8)
    state = State()
    first = layer(x, memory, state=state)
    assert torch.equal(layer(x, torch.full_like(memory, torch.nan), state=state), first)


def test_several_positions_after_earlier_ones_are_refused(rng):
    layer = LorentzAttention(8, 2, causal=True).double()
    state = State()
    layer(points(rng, 1, 2, 8), state=state)
    with pytest.raises(ValueError, match="takes one position at a time, got 2"):
        layer(points(rng, 1, 2, 8), state=state)


def test_padding_beside_a_state_is_refused(rng):
    layer = LorentzAttention(8, 2, causal=True).double()
    padding = torch.zeros(1, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match="takes no padding"):
        layer(points(rng, 1, 1, 8), padding=padding, state=State())


def test_attention_dropout_acts_on_the_projections_inputs_not_on_the_output_layer(rng):
    layer = LorentzAttention(8, 2, dropout=0.25, attention_dropout=0.5)
    assert (layer.qkv.dropout, layer.out.dropout) == (0.5, 0.25)


def test_gradients_agree_with_finite_differences(rng):
    layer = LorentzAttention(6, 2, causal=True).double()
    layer = randomized(layer, rng)
    x = points(rng, 1, 3, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, *layer.parameters()))


def test_autocast_keeps_heads_on_the_hyperboloid(rng):
    layer = LorentzAttention(64, 4)
    q, k, v = (heads(rng, 2, 4, 9, 16, radius=3.0).float() for _ in range(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer.mix(scaled(layer, q), k, v, allowed=None, is_causal=False)
    assert lorentz.violation(out).max() < 2e-6
    torch.testing.assert_close(
        out, layer.mix(scaled(layer, q), k, v, allowed=None, is_causal=False)
    )


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="width=10 is not divisible by 4 heads"):
        LorentzAttention(10, 4)
