"""LorentzLinear against the formula written out in NumPy."""

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.hybonet import RESIDUALS, LorentzLinear, LorentzPositions
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


def test_split_heads_are_linear_maps_with_one_scale_for_each_projection(rng):
    layer = randomized(LorentzLinear(6, 12, split_heads=3, projections=2).double(), rng)
    x = points(rng, 2, 5, 6)
    got = layer(x)
    assert got.shape == (2, 5, 2, 3, 4)
    weight, bias, scale = (p.detach().numpy() for p in layer.parameters())
    weight, bias = weight.reshape(2, 3, 4, 6), bias.reshape(2, 3, 4)
    for p in range(2):
        for h in range(3):
            expected = oracle.linear(x[1, 4].numpy(), weight[p, h], bias[p, h], scale[p], 1.0)
            np.testing.assert_allclose(got[1, 4, p, h].detach(), expected, **EXACT)


def test_fresh_layer_ignores_every_time_coordinate_of_its_input(rng):
    layer = LorentzLinear(12, 6, merged_heads=3)
    x = torch.randn(4, 12, generator=rng)
    changed = x.clone()
    changed[:, [0, 4, 8]] += 5
    assert torch.equal(layer(x), layer(changed))
    assert layer.weight[:, [1, 5, 9]].abs().min() > 0
    assert layer.weight.abs().max() <= 0.02


@pytest.mark.parametrize("c", CURVATURES)
def test_output_lies_on_the_hyperboloid_and_fresh_times_are_bounded(c, rng):
    layer = LorentzLinear(16, 16, c=c)
    y = layer(points(rng, 512, 16, c=c, dtype=torch.float32))
    assert lorentz.violation(y, c=c).max() < 2e-6
    assert y[:, 0].max() <= np.exp(2.3) + c**-0.5 + 0.1


def test_zero_space_gives_the_origin_with_a_finite_gradient():
    layer = LorentzLinear(4, 6, c=4.0)
    torch.nn.init.zeros_(layer.weight)
    x = torch.ones(3, 4, requires_grad=True)
    y = layer(x)
    y.square().sum().backward()
    torch.testing.assert_close(y, lorentz.origin(6, c=4.0).expand(3, 6))
    assert all(torch.isfinite(p.grad).all() for p in (x, *layer.parameters()))


def test_autocast_keeps_the_point_on_the_hyperboloid(rng):
    layer = LorentzLinear(64, 64)
    x = points(rng, 64, 64, radius=3.0, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x, x)
    assert y.dtype == torch.float32
    assert lorentz.violation(y).max() < 2e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_width": 10, "out_width": 8, "merged_heads": 3}, "in_width=10 is not divisible by 3"),
        ({"in_width": 8, "out_width": 10, "split_heads": 3}, "out_width=10 is not divisible by 3"),
        ({"in_width": 8, "out_width": 4, "split_heads": 4}, "points of 1 coordinates in 4 head"),
        ({"in_width": 8, "out_width": 8, "projections": 2}, "projections=2 needs split_heads"),
        ({"in_width": 8, "out_width": 8, "residual": "none"}, "residual must be one of full"),
        ({"in_width": 8, "out_width": 8, "c": -1.0}, "c must be above 0 and finite.*got -1"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LorentzLinear(**arguments)


def test_sphere_residual_times_depend_only_on_the_scale(rng):
    layer = randomized(LorentzLinear(8, 8, residual="sphere").double(), rng)
    x = points(rng, 5, 8).requires_grad_()
    times = layer(x, x)[:, 0]
    wanted = layer.log_scale.exp() + 1.1
    torch.testing.assert_close(times, wanted.expand(5), atol=1e-9, rtol=1e-9)
    times.sum().backward()
    assert layer.weight.grad.abs().max() < 1e-9
    assert layer.log_scale.grad.abs().min() > 1


@pytest.mark.parametrize("form", RESIDUALS)
def test_gradients_of_every_residual_form_match_finite_differences(form, rng):
    layer = randomized(LorentzLinear(5, 6, residual=form).double(), rng)
    x, residual = points(rng, 3, 5).requires_grad_(), points(rng, 3, 6).requires_grad_()

    def run(x, residual, *parameters):
        named = dict(zip(dict(layer.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(layer, named, (x, residual))

    assert torch.autograd.gradcheck(run, (x, residual, *layer.parameters()))


def test_positions_are_not_points_and_enter_only_by_addition():
    with pytest.raises(ValueError, match="positions enter as 'full' or 'space', got 'logit'"):
        LorentzPositions(8, 9, residual="logit")
