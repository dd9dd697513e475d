"""Hypformer's curvatures and blocks against their formulas in NumPy."""

import math

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.curvature import Curvature, scale_between
from hyptrans.layers.hypformer import (
    HypformerEmbedding,
    HypformerFeedForward,
    HypformerLogits,
    HypformerPositions,
)
from hyptrans.layers.lorentz import LorentzEmbedding
from tests.geometry.helpers import CURVATURES, EXACT, points
from tests.layers.conftest import CHANGES, NORMED, arrays, fixed, randomized
from tests.oracles import hypformer as oracle
from tests.oracles.lorentz import centroid, lift

TOKENS = torch.tensor([[5, 1, 7], [1, 2, 9]])


@pytest.mark.parametrize("c", [1e-3, 0.25, 1.0, 4.0, 100.0])
def test_curvature_starts_at_its_value_and_may_be_fixed(c):
    learned = Curvature(c)
    assert learned().item() == pytest.approx(c, rel=1e-6)
    assert [name for name, _ in learned.named_parameters()] == ["raw"]
    assert fixed(c)() == c
    assert not list(fixed(c).parameters())


@pytest.mark.parametrize(("c_in", "c_out"), CHANGES)
def test_change_of_curvature_scales_every_distance_by_one_factor(c_in, c_out, rng):
    x = points(rng, 20, 8, c=c_in)
    y = lorentz.lift(x[:, 1:] * scale_between(c_in, c_out), c=c_out)
    assert lorentz.violation(y, c=c_out).max() < 1e-14
    before = lorentz.distance(x[:, None], x, c=c_in)
    after = lorentz.distance(y[:, None], y, c=c_out)
    torch.testing.assert_close(after, before * math.sqrt(c_in / c_out), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("c_in", "c_out"), CHANGES)
def test_feed_forward_matches_the_formulas(c_in, c_out, exact_norm, rng):
    layer = HypformerFeedForward(
        6, 10, curvature=fixed(c_out), input_curvature=fixed(c_in), gain=1.0
    )
    layer = randomized(layer.double(), rng)
    x = points(rng, 4, 6, c=c_in)
    got = layer(x).detach().numpy()
    p = arrays(layer)
    for i in range(4):
        inner = oracle.htc(x[i].numpy(), p["expand.weight"], p["expand.bias"], c_in, c_out)
        inner = lift(np.maximum(inner, 0), c_out)
        out = oracle.htc(inner, p["contract.weight"], p["contract.bias"], c_out, c_out)
        norm = (p["norm.weight"], p["norm.bias"])
        expected = oracle.residual_norm(x[i].numpy(), out, *norm, c_in, c_out)
        np.testing.assert_allclose(got[i], expected, **NORMED)


@pytest.mark.parametrize(("c_in", "c_out"), CHANGES)
def test_position_enters_as_the_centroid_with_its_point(c_in, c_out, exact_norm, rng):
    layer = HypformerPositions(6, 20, curvature=fixed(c_out), input_curvature=fixed(c_in), gain=1.0)
    layer = randomized(layer.double(), rng)
    x = points(rng, 2, 3, 6, c=c_in)
    positions = torch.tensor([[0, 1, 2], [0, 0, 7]])
    got = layer(x, positions).detach().numpy()
    p = arrays(layer)
    for b in range(2):
        for i in range(3):
            moved = lift(math.sqrt(c_in / c_out) * x[b, i, 1:].numpy(), c_out)
            vector = p["vectors.weight"][positions[b, i]]
            own = lift(oracle.htc(vector, p["htc.weight"], p["htc.bias"], 1.0, 1.0), c_out)
            middle = centroid([moved, own], [1.0, 1.0], c_out)
            normed = oracle.layer_norm(middle[1:], p["norm.weight"], p["norm.bias"])
            np.testing.assert_allclose(got[b, i], lift(normed, c_out), **NORMED)


@pytest.mark.parametrize("c", CURVATURES)
def test_embedding_lifts_coordinates_at_its_learned_curvature(c):
    curvature = Curvature(1.0)
    table = HypformerEmbedding(11, 16, curvature=curvature, padding_idx=1)
    torch.nn.init.constant_(curvature.raw, math.log(math.expm1(c)))
    x = table(TOKENS)
    assert torch.equal(x[..., 1:], table.weight[TOKENS])
    assert lorentz.violation(x, c=c).max() < 1e-6
    torch.testing.assert_close(x[0, 1], lorentz.origin(16, c=c))


@pytest.mark.parametrize("c", CURVATURES)
def test_manifold_points_keep_their_curvature_and_are_rescaled(c):
    curvature = Curvature(2.0)
    table = HypformerEmbedding(11, 16, curvature=curvature, storage="manifold")
    torch.nn.init.constant_(curvature.raw, math.log(math.expm1(c)))
    assert lorentz.violation(table.weight, c=2.0).max() < 1e-6
    expected = lorentz.lift(table.weight[TOKENS][..., 1:] * (2.0 / c) ** 0.5, c=c)
    torch.testing.assert_close(table(TOKENS), expected)
    torch.testing.assert_close(table.points(c)[TOKENS], expected)
    torch.testing.assert_close(table.points()[TOKENS], expected)


@pytest.mark.parametrize("c", CURVATURES)
def test_tied_logits_are_distances_at_the_curvature_of_the_input(c, rng):
    table = HypformerEmbedding(9, 6, curvature=Curvature(1.0))
    layer = randomized(HypformerLogits(table, input_curvature=fixed(c)).double(), rng)
    x = points(rng, 2, 3, 6, c=c)
    at_c = lorentz.lift(table.weight, c=c)
    expected = -lorentz.squared_distance(x[..., None, :], at_c, c=c) + layer.bias
    torch.testing.assert_close(layer(x), expected, **EXACT)


def test_gradients_agree_with_finite_differences(rng):
    chain = {"curvature": Curvature(0.7), "input_curvature": Curvature(2.0), "gain": 1.0}
    x = points(rng, 2, 3, 5)
    positions = torch.tensor([[0, 1, 2], [0, 0, 1]])
    for block, arguments in (
        (HypformerFeedForward(5, 6, **chain), (x,)),
        (HypformerPositions(5, 3, **chain), (x, positions)),
        (HypformerLogits(LorentzEmbedding(4, 5), input_curvature=chain["input_curvature"]), (x,)),
    ):
        block = randomized(block.double(), rng)
        chain["input_curvature"].double()
        inputs = (
            arguments[0].clone().requires_grad_(),
            chain["input_curvature"].raw,
            *block.parameters(),
        )
        assert torch.autograd.gradcheck(
            lambda x, *_, block=block, rest=arguments[1:]: block(x, *rest), inputs
        )
