"""Layers as torch.compile takes them: whole, and with the same values and gradients."""

import pytest
import torch

from hyptrans.layers.curvature import Curvature
from hyptrans.seq2seq.encoder import Encoder
from tests.models.conftest import ARCHITECTURES, small

SOURCE = torch.tensor([[5, 9, 4, 7, 2], [1, 1, 6, 8, 2]])


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_layer_compiles_whole(arch, side):
    model = small(arch)
    found = Encoder.forward(model.encoder, SOURCE)
    x, layer = found.states[0].detach(), getattr(model, side).layers[0]
    given = (found.padding,) if side == "encoder" else (None, x, found.padding, None)
    # traced and not compiled, which takes as long as all other tests of layers
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    results = []
    for function in (compiled, layer):
        inputs = [
            x.clone().requires_grad_(),
            *filter(lambda p: p.requires_grad, layer.parameters()),
        ]
        made = function(inputs[0], *given)
        results.append([made, *torch.autograd.grad(made.square().sum(), inputs, allow_unused=True)])
    for ours, expected in zip(*results, strict=True):
        assert (ours is None) == (expected is None)
        if expected is not None:
            torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_model_compiles_whole(arch):
    model = small(arch)
    previous = torch.tensor([[2, 5, 6, 1], [2, 5, 6, 7]])
    # what a model makes of padding is nobody's business
    real = previous.ne(1)
    parameters = [p for p in model.parameters() if p.requires_grad]
    results = []
    for function in (torch.compile(model, fullgraph=True, backend="eager"), model):
        made = function(SOURCE, None, previous)[0][real]
        found = torch.autograd.grad(made.square().sum(), parameters, materialize_grads=True)
        results.append([made, *found])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-8)


@torch.no_grad()
def test_a_learned_curvature_is_no_number_of_the_graph():
    curvature = Curvature(1.0)
    compiled = torch.compile(curvature, fullgraph=True, backend="eager")
    assert compiled().item() == pytest.approx(1)
    curvature.raw.fill_(3.0)
    assert compiled().item() == pytest.approx(curvature())
