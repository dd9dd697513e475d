"""Embeddings, positions, feed-forward and logits."""

import io

import geoopt
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.hybonet import LorentzFeedForward, LorentzPositions
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits
from hyptrans.layers.positions import sinusoids
from tests.geometry.helpers import CURVATURES, EXACT, points
from tests.layers.conftest import randomized

TOKENS = torch.tensor([[5, 1, 7], [1, 2, 9]])


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("storage", ["space", "manifold"])
def test_tokens_are_points_and_padding_is_the_origin(storage, c):
    table = LorentzEmbedding(11, 16, padding_idx=1, c=c, storage=storage)
    x = table(TOKENS)
    assert x.shape == (2, 3, 16)
    assert lorentz.violation(x, c=c).max() < 1e-6
    torch.testing.assert_close(x[0, 1], lorentz.origin(16, c=c))
    torch.testing.assert_close(table.points()[TOKENS], x)


def test_space_storage_is_a_plain_parameter_with_one_coordinate_less():
    table = LorentzEmbedding(500, 65, storage="space")
    assert table.weight.shape == (500, 64)
    assert type(table.weight) is torch.nn.Parameter
    assert table.weight.std().item() == pytest.approx(65**-0.5, rel=0.05)


def test_manifold_storage_is_a_geoopt_parameter_that_loads_safely():
    table = LorentzEmbedding(11, 16, storage="manifold")
    assert isinstance(table.weight, geoopt.ManifoldParameter)
    file = io.BytesIO()
    torch.save(table.state_dict(), file)
    file.seek(0)
    table.load_state_dict(torch.load(file, weights_only=True))
    assert isinstance(table.weight, geoopt.ManifoldParameter)


def test_points_stored_in_half_precision_stay_on_the_hyperboloid():
    table = LorentzEmbedding(11, 16, storage="manifold").half()
    assert lorentz.violation(table(TOKENS)).max() < 1e-6


def test_position_enters_as_the_residual_of_a_linear_layer(rng):
    layer = randomized(LorentzPositions(8, 20).double(), rng)
    x = points(rng, 2, 3, 8)
    positions = torch.tensor([[0, 1, 2], [0, 0, 1]])
    expected = layer.linear(x, layer.vectors.weight[positions])
    torch.testing.assert_close(layer(x, positions), expected, **EXACT)
    same_word = x[:1, :1].expand(1, 3, 8)
    assert layer(same_word, positions[:1])[0].std(dim=0).max() > 0.1


def test_sinusoidal_vectors_of_older_checkpoints_are_recomputed():
    layer = LorentzPositions(8, 30, learned=False)
    for saved in (sinusoids(20, 8), sinusoids(40, 8).bfloat16()):
        layer.load_state_dict(layer.state_dict() | {"vectors.weight": saved}, strict=True)
        torch.testing.assert_close(layer.vectors.weight, sinusoids(30, 8))
    for other in (torch.zeros(20, 8), torch.tensor(1.0)):
        given = layer.state_dict() | {"vectors.weight": other}
        with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) .*: .vectors.weight"):
            layer.load_state_dict(given, strict=True)


def test_feed_forward_is_two_linear_layers_with_relu_between_and_a_residual(rng):
    layer = randomized(LorentzFeedForward(6, 10, dropout=0.25).double().eval(), rng)
    x = points(rng, 4, 6)
    inner = layer.expand(x)
    torch.testing.assert_close(layer(x), layer.contract(inner, x), **EXACT)
    assert inner.shape == (4, 10)
    assert layer.contract.relu
    assert not layer.expand.relu
    assert layer.expand.dropout == layer.contract.dropout == 0.25


@pytest.mark.parametrize("c", CURVATURES)
def test_logits_are_negative_squared_distances_plus_bias(c, rng):
    layer = randomized(LorentzLogits(LorentzEmbedding(9, 6, c=c)).double(), rng)
    x = points(rng, 2, 3, 6, c=c)
    expected = -lorentz.squared_distance(x[..., None, :], layer.table.points(), c=c) + layer.bias
    # the product form is shifted by the two constants that softmax drops
    torch.testing.assert_close(layer(x), expected, **EXACT)
