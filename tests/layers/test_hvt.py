"""Layers of the HVT against NumPy, geoopt and their own definitions."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from hyptrans.geometry import lorentz, poincare
from hyptrans.layers.hvt import (
    NORM_EPSILON,
    MobiusLinear,
    PoincareEmbedding,
    PoincareFeedForward,
    PoincareLogits,
    PoincarePositions,
    ScaledResidual,
)
from hyptrans.layers.lorentz import LorentzEmbedding
from tests.geometry.helpers import CURVATURES, EXACT_IN_BALL, ball, geoopt_ball
from tests.layers.conftest import randomized
from tests.oracles import poincare as oracle

pytestmark = pytest.mark.usefixtures("fresh_weights")


@pytest.mark.parametrize("c", CURVATURES)
def test_linear_matches_geoopt_and_numpy(c, rng):
    layer = randomized(MobiusLinear(6, 8, c=c).double(), rng)
    x = ball(rng, 5, 6, c=c)
    got = layer(x).detach()
    manifold = geoopt_ball(c)
    weight, bias = (p.detach() for p in layer.parameters())
    moved = manifold.mobius_matvec(weight, x)
    expected = manifold.projx(manifold.mobius_add(moved, manifold.expmap0(bias)))
    torch.testing.assert_close(got, expected, **EXACT_IN_BALL)
    for i in range(5):
        by_hand = oracle.linear(x[i].numpy(), weight.numpy(), bias.numpy(), c)
        np.testing.assert_allclose(got[i], by_hand, **EXACT_IN_BALL)


@pytest.mark.parametrize("c", CURVATURES)
def test_residual_is_the_scaled_mobius_sum(c, rng):
    layer = ScaledResidual(6, c=c).double()
    assert layer.beta == 1
    torch.nn.init.constant_(layer.beta, 0.7)
    x, moved, bias = (ball(rng, n, 6, c=c) for n in (5, 5, 1))
    got = layer(x, *(poincare.log_origin(p, c=c) for p in (moved, bias[0])))
    manifold = geoopt_ball(c)
    update = manifold.mobius_add(moved, bias)
    scaled = manifold.mobius_scalar_mul(torch.tensor(0.7, dtype=torch.float64), update)
    total = poincare.log_origin(manifold.mobius_add(x, scaled), c=c)
    normed = F.layer_norm(total, (6,), eps=NORM_EPSILON / 6) / 6**0.5
    torch.testing.assert_close(got, poincare.exp_origin(normed, c=c), **EXACT_IN_BALL)


@pytest.mark.parametrize("c", CURVATURES)
def test_feed_forward_matches_the_formulas_from_input_to_output(c, rng):
    layer = randomized(PoincareFeedForward(6, 10, c=c).double(), rng)
    x = ball(rng, 5, 6, c=c)
    got = layer(x).detach().numpy()
    expand, contract, residual = (
        [p.detach().numpy() for p in part.parameters()]
        for part in (layer.expand, layer.contract, layer.residual)
    )
    beta, gain, bias = residual
    for i in range(5):
        point = x[i].numpy()
        hidden = oracle.log_origin(oracle.linear(point, *expand, c), c)
        hidden = oracle.exp_origin(np.maximum(hidden, 0), c)
        update = oracle.log_origin(oracle.linear(hidden, *contract, c), c)
        total = oracle.mobius_add(point, oracle.exp_origin(beta * update, c), c)
        normed = oracle.layer_norm(
            oracle.log_origin(total, c), gain / 6**0.5, bias / 6**0.5, NORM_EPSILON / 6
        )
        np.testing.assert_allclose(got[i], oracle.exp_origin(normed, c), **EXACT_IN_BALL)


@pytest.mark.parametrize("c", CURVATURES)
def test_embedding_is_the_ball_view_of_the_lorentz_table(c, rng):
    tokens = torch.randint(9, (2, 5), generator=rng)
    table = PoincareEmbedding(9, 6, padding_idx=1, c=c).double()
    assert table.weight.shape == (9, 6)
    assert table(tokens).shape == (2, 5, 6)
    lifted = poincare.to_lorentz(table(tokens), c=c)
    torch.testing.assert_close(lifted, LorentzEmbedding.forward(table, tokens), **EXACT_IN_BALL)
    assert table(torch.tensor([1])).abs().max() == 0
    manifold = PoincareEmbedding(9, 6, padding_idx=1, c=c, storage="manifold")
    assert manifold.weight.shape == (9, 7)
    assert manifold(tokens).shape == (2, 5, 6)


@pytest.mark.parametrize("c", CURVATURES)
def test_positions_are_added_as_scaled_points(c, rng):
    layer = PoincarePositions(6, 9, c=c).double()
    assert layer.scale == 1
    torch.nn.init.constant_(layer.scale, 1.3)
    x, positions = ball(rng, 2, 5, 6, c=c), torch.arange(5).expand(2, 5)
    manifold = geoopt_ball(c)
    points = manifold.expmap0(layer.vectors.weight[:5])
    scaled = manifold.mobius_scalar_mul(torch.tensor(1.3, dtype=torch.float64), points)
    torch.testing.assert_close(layer(x, positions), manifold.mobius_add(x, scaled), **EXACT_IN_BALL)


@pytest.mark.parametrize("c", CURVATURES)
def test_logits_are_negative_squared_lorentzian_distances_of_the_lift(c, rng):
    table = PoincareEmbedding(9, 6, c=c).double()
    logits = randomized(PoincareLogits(table), rng).double()
    x = ball(rng, 2, 5, 6, c=c)
    lifted = poincare.to_lorentz(x, c=c)
    expected = -lorentz.squared_distance(lifted[..., None, :], table.points(), c=c) + logits.bias
    torch.testing.assert_close(logits(x), expected, **EXACT_IN_BALL)


def test_gradients_agree_with_finite_differences(rng):
    feed_forward = randomized(PoincareFeedForward(4, 6).double(), rng)
    positions = randomized(PoincarePositions(4, 3).double(), rng)
    x = ball(rng, 1, 3, 4).requires_grad_()
    at = torch.arange(3)[None]
    for layer, call in (
        (feed_forward, feed_forward),
        (positions, lambda x: positions(x, at)),
    ):
        parameters = tuple(layer.parameters())
        assert torch.autograd.gradcheck(lambda x, *_, call=call: call(x), (x, *parameters))
