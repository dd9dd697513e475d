"""Layers as torch.compile takes them: whole, and with the same values and gradients."""

import pytest
import torch

from hyptrans.seq2seq.stacks import Encoder
from tests.models.conftest import ARCHITECTURES, small

SOURCE = torch.tensor([[5, 9, 4, 7, 2], [1, 1, 6, 8, 2]])


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


# a layer of the decoder has all that one of the encoder has, but attention without an order
@pytest.mark.parametrize(
    ("arch", "side"),
    [*((arch, "decoder") for arch in ARCHITECTURES), ("hypformer_tiny", "encoder")],
)
def test_a_layer_compiles_without_graph_breaks(arch, side):
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
