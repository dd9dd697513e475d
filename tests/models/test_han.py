"""HAN's fresh weights, sizes and options, and its decoding by steps."""

import math

import pytest
import torch
from fairseq.modules import MultiheadAttention

from hyptrans.layers.han import HyperbolicAttention
from hyptrans.models.han import SIZES
from tests.models.conftest import (
    batch,
    build,
    dictionary,
    small,
    task_of,
    trained,
)

SYMBOLS = dictionary()
EXACT = {"rtol": 0, "atol": 1e-9}


@pytest.mark.parametrize("memory_width", [None, 64, 32])
def test_fresh_weights_have_the_sizes_of_fairseqs(memory_width):
    torch.manual_seed(0)
    ours = HyperbolicAttention(64, 4, coordinates="cartesian", memory_width=memory_width)
    theirs = MultiheadAttention(64, 4, kdim=memory_width, vdim=memory_width)
    maps = [theirs.q_proj, theirs.k_proj, theirs.v_proj]
    if memory_width is None:
        blocks = list(ours.qkv.weight.chunk(3))
    else:
        blocks = [ours.q.weight, *ours.kv.weight.chunk(2)]
    for block, linear in zip([*blocks, ours.out.weight], [*maps, theirs.out_proj], strict=True):
        assert block.abs().max().item() == pytest.approx(linear.weight.abs().max().item(), rel=0.01)
    assert ours.out.bias.abs().max() == theirs.out_proj.bias.abs().max() == 0


@pytest.mark.parametrize("size", SIZES)
def test_every_size_has_as_many_parameters_as_its_twin_also_base_and_big(size):
    task = task_of(dictionary(4000))
    with torch.device("meta"):
        ratio = trained(build(f"han_{size}", task)) / trained(build(f"euclidean_{size}", task))
    assert math.isclose(ratio, 1, abs_tol=0.03)


@pytest.mark.parametrize("coordinates", ["polar", "cartesian"])
@pytest.mark.parametrize("weights", ["softmax", "sigmoid"])
def test_every_kind_decodes_by_steps_as_a_whole(weights, coordinates, sentences):
    model = small("han_tiny", han_weights=weights, han_coordinates=coordinates)
    source, previous = batch(sentences, SYMBOLS)
    whole = model(source, None, previous)[0]
    encoder_out, state = model.encoder(source), {}
    for i in range(previous.size(1)):
        step, _ = model.decoder(previous[:, : i + 1], encoder_out, state)
        real = previous[:, i] != SYMBOLS.pad()
        torch.testing.assert_close(step[real, 0], whole[real, i], **EXACT)
