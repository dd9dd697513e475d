"""Layers as torch.compile takes them: whole, and with the same values and gradients."""

import pytest
import torch
from torch.export import Dim, export

from hyptrans.inference.architecture import configuration
from hyptrans.seq2seq.architectures import ARCHITECTURES as CORE
from hyptrans.seq2seq.stacks import Encoder
from tests.models.conftest import ARCHITECTURES, dictionary, small

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


SIZES = {"embed_dim": 128, "ffn_embed_dim": 512, "layers": 1, "attention_heads": 8}
WIDE = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIZES.items()}


# graphs for ONNX Runtime are made of the others in tests/inference/test_onnx.py
def test_a_model_of_real_size_is_exported_for_any_batch_and_length():
    words, arch = dictionary(8000), "hybonet_tiny"
    model = CORE[arch].build(configuration(arch, WIDE), words, words).eval()
    model.requires_grad_(False)
    rng = torch.Generator().manual_seed(1)

    def batch(rows, length, targets):
        return [torch.randint(4, 8000, (rows, n), generator=rng) for n in (length, targets)]

    rows, length, targets = (Dim(n, min=3, max=1024) for n in ("rows", "length", "targets"))
    shapes = ({0: rows, 1: length}, {0: rows, 1: targets})
    program = export(model, tuple(batch(3, 7, 5)), dynamic_shapes=shapes).module()
    # few and many products of two numbers: sizes decide how they are multiplied outside of a graph
    for sizes in ((3, 4, 3), (40, 30, 70)):
        given = batch(*sizes)
        torch.testing.assert_close(program(*given), model(*given), rtol=1e-3, atol=1e-3)
