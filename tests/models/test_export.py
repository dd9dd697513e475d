"""Encoder and one step of decoding as torch.export takes them: values equal, state as tensors."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from hyptrans.inference.architecture import configuration
from hyptrans.layers.attention import Memory
from hyptrans.layers.hypformer_linear_attention import Sums
from hyptrans.seq2seq.architectures import ARCHITECTURES

NAMES = ("hybonet", "hybonet_plus", "hypformer", "han", "hvt", "sphere")
NAMES += ("euclidean", "euclidean_postnorm", "euclidean_prenorm")
SIZES = {"embed_dim": 16, "ffn_embed_dim": 32, "layers": 2, "attention_heads": 2}
SMALL = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIZES.items()}
SOURCE = torch.tensor([[5, 9, 4, 7, 2], [1, 1, 6, 8, 2]])
OTHERS = torch.tensor([[5, 9, 4, 2, 1, 1, 1], [7, 6, 8, 11, 4, 12, 2], [1, 1, 1, 1, 1, 9, 2]])
TARGET = torch.tensor([[2, 5, 6, 9], [2, 5, 6, 7]])
BATCH, LENGTH, EARLIER = (Dim(name, max=64) for name in ("batch", "length", "earlier"))


class Words(SimpleNamespace):
    def __len__(self):
        return 20

    def pad(self):
        return 1


def small(name):
    torch.manual_seed(1)
    cfg = configuration(f"{name}_tiny", {**SMALL, "dropout": 0.0})
    made = ARCHITECTURES[f"{name}_tiny"].build(cfg, Words(), Words())
    return made.double().eval().requires_grad_(False)


class Encode(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.encoder = model.encoder

    def forward(self, tokens):
        return self.encoder.memory(tokens)


def kept_of(state):
    """Two tensors of each layer, of the tokens before."""
    return [tuple(layer.attention.kept) for layer in state.layers]


class Step(nn.Module):
    """A step of decoding, with its state as tensors."""

    def __init__(self, model):
        super().__init__()
        self.decoder = model.decoder

    def forward(self, tokens, memory, padding, before):
        state = self.decoder.start()
        for i, (layer, pair) in enumerate(zip(self.decoder.layers, before, strict=True)):
            if hasattr(layer.attention, "psi"):
                state.layers[i].attention.kept = Sums(*pair)
            else:
                state.layers[i].attention.kept = Memory(*pair)
        return self.decoder.predict(tokens, memory, padding, state), kept_of(state)


@pytest.mark.parametrize("name", NAMES)
def test_encoder_is_exported_for_any_batch(name):
    module = Encode(small(name))
    program = export(module, (SOURCE,), dynamic_shapes=({0: BATCH, 1: LENGTH},)).module()
    for tokens in (SOURCE, OTHERS, OTHERS[1:, -2:]):
        for found, wanted in zip(program(tokens), module(tokens), strict=True):
            torch.testing.assert_close(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_exported_for_any_batch_and_number_of_tokens_before(name):
    model, program = small(name), None
    kept = {0: BATCH, 2: EARLIER}
    if name == "hypformer":
        kept = {0: BATCH}
    source = {0: BATCH, 1: LENGTH}
    shapes = ({0: BATCH, 1: EARLIER + 1}, source, source, [(kept, kept)] * 2)
    for tokens in (SOURCE, OTHERS):
        memory = model.encoder.memory(tokens)
        target, state = TARGET[:1].repeat(len(tokens), 1), model.decoder.start()
        for length in (1, 2):
            model.decoder.predict(target[:, :length], *memory, state)
        before = kept_of(state)
        for length in (3, 4):
            # a part of a larger table would tie the graph to its stride
            given = (target[:, :length].clone(), *memory, before)
            program = program or export(Step(model), given, dynamic_shapes=shapes).module()
            logits, before = program(*given)
            wanted = model.decoder.predict(target[:, :length], *memory)
            torch.testing.assert_close(logits[:, 0], wanted[:, -1])
