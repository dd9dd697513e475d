"""What a training logs of its points."""

import geoopt
import pytest
import torch
from fairseq.logging import metrics
from torch import nn

from hyptrans.fairseq.training.statistics import PointStatistics
from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space
from hyptrans.layers.manifold import StableLorentz


class Side(nn.Module):
    """An encoder or decoder whose layers return the points that they are given."""

    def __init__(self, space):
        super().__init__()
        self.embed_positions = nn.Identity()
        self.layers = nn.ModuleList([nn.ModuleDict({"feed_forward": nn.Identity()})])
        self.layers[0].feed_forward = self.layers[0]["feed_forward"]
        self.space_of = lambda part: space

    def last_parts(self):
        return [self.embed_positions, self.layers[0].feed_forward]


def model_of(space):
    model = nn.Module()
    model.encoder, model.decoder = Side(space), Side(space)
    return model


def logged(model, *points, updates=9, every=10):
    """What one update logs in which the last layer of the decoder returns the points."""
    statistics = PointStatistics(model, every)
    with metrics.aggregate(new_root=True) as found:
        statistics.begin(updates)
        for x in points:
            model.decoder.layers[0].feed_forward(x)
        statistics.end()
    return {name: found[name].smoothed_value for name in ("drift", "radius") if name in found}


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_largest_drift_and_radius_of_the_hyperboloid_are_logged(c):
    near, far = lorentz.exp_origin(torch.tensor([[0.3, 0.4], [1.2, 1.6]]) * c**-0.5, c=c)
    off = near.clone()
    off[0] *= 1.01
    found = logged(model_of(Space("lorentz", c)), off[None], far[None])
    assert found["radius"] == pytest.approx(2.0, abs=1e-3)
    # <x, x> + 1/c of a time that is 1 % too large, by its square
    assert found["drift"] == pytest.approx((1.01**2 - 1) / 1.01**2, rel=1e-3)


def test_radius_of_the_ball_is_logged():
    points = poincare.exp_origin(torch.tensor([[0.3, 0.4], [0.6, 0.8]]))
    found = logged(model_of(Space("poincare")), points)
    assert set(found) == {"radius"}
    assert found["radius"] == pytest.approx(2.0, abs=1e-5)


def test_points_that_are_parameters_are_looked_at():
    model = model_of(Space("lorentz"))
    table = lorentz.exp_origin(torch.tensor([[0.0, 0.5], [3.0, 0.0]]))
    table[1, 0] *= 1.1
    model.table = geoopt.ManifoldParameter(table, manifold=StableLorentz())
    found = logged(model, lorentz.origin(3)[None])
    assert found["drift"] == pytest.approx((1.1**2 - 1) / 1.1**2, rel=1e-2)
    assert found["radius"] == pytest.approx(3.0, abs=1e-4)


def test_flat_states_and_other_updates_log_nothing():
    points = torch.ones(2, 3)
    assert logged(model_of(Space("euclidean")), points) == {}
    assert logged(model_of(Space("lorentz")), points, updates=8) == {}
    assert logged(nn.Linear(2, 2)) == {}


def test_nothing_is_left_on_the_layers_between_two_looks():
    model = model_of(Space("lorentz"))
    logged(model, lorentz.origin(3)[None])
    assert not any(module._forward_hooks for module in model.modules())
