"""How radii grow by steps: the layer by distances to hyperplanes, and what is recorded."""

import math

import pytest
import torch

from hyptrans.geometry import lorentz
from recipes.common import results
from recipes.study import norms


@pytest.mark.parametrize("unit", [False, True])
def test_outputs_of_fgg_are_distances_to_hyperplanes(unit):
    c, length, offset = 0.7, 2.5, 1.2
    layer = norms.FGGLinear(3, 1, unit=unit, c=c).double()
    with torch.no_grad():
        layer.normals.copy_(torch.tensor([[length, 0, 0]]))
        layer.offsets.fill_(offset)
    # on the hyperplane's own normal its distance is a difference of two radii
    radii = torch.tensor([-2.0, 0.3, 0.48, 4.0], dtype=torch.float64)
    x = lorentz.lift(torch.sinh(c**0.5 * radii)[:, None] / c**0.5 * torch.eye(3)[:1], c=c)
    made, scale = layer(x)[:, 1], 1.0 if unit else length
    expected = scale * torch.sinh(c**0.5 * (radii - offset / scale)) / c**0.5
    torch.testing.assert_close(made, expected)


def recorded():
    lines = results.read_lines(norms.RECORD)
    return {(x["layer"], x["optimizer"], x["seed"]): dict(x["radii"]) for x in lines}


def test_record_is_reproducible():
    for (layer, optimizer, seed), known in recorded().items():
        if seed == 1:
            found = dict(norms.radii(layer, optimizer, seed, norms.EVERY))
            assert found == pytest.approx({step: known[step] for step in found}, abs=2e-3)


def test_radii_grow_linearly_with_scale_and_logarithmically_with_weights():
    found = recorded()
    for layer in ("hybonet", "fgg, unit normals"):
        for optimizer in norms.OPTIMIZERS:
            known = found[layer, optimizer, 1]
            assert known[1000] - known[500] > 0.85 * (known[500] - known[0])
    for optimizer in norms.OPTIMIZERS:
        known = found["hypformer", optimizer, 1]
        # twice the steps add less and less than a constant of the logarithm of 2
        assert known[1000] - known[500] < math.log(2)
        assert known[500] - known[50] < 2
    assert max(found["fgg", "Adam 0.01", seed].get(1000, 0) for seed in norms.SEEDS) == 0
