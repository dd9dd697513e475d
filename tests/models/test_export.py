"""Encoder and one step of decoding as torch.export takes them: values equal, state as tensors."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.export import export

from hyptrans.inference.architecture import configuration
from hyptrans.layers.decoding_state import append
from hyptrans.layers.hypformer_linear_attention import Kept, Sums
from hyptrans.seq2seq.architectures import ARCHITECTURES

NAMES = ("hybonet", "hybonet_plus", "hypformer", "han", "hvt", "sphere")
SIZES = {"embed_dim": 16, "ffn_embed_dim": 32, "layers": 2, "attention_heads": 2}
SMALL = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIZES.items()}
SOURCE = torch.tensor([[5, 9, 4, 7, 2], [1, 1, 6, 8, 2]])
TARGET = torch.tensor([[2, 5, 6, 9], [2, 5, 6, 7]])


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


class Step(nn.Module):
    """A step of decoding; each layer keeps two tensors of the tokens before."""

    def __init__(self, model):
        super().__init__()
        self.decoder = model.decoder

    def forward(self, tokens, memory, padding, *before):
        state = self.decoder.start()
        for i, layer in enumerate(state.layers):
            if before and hasattr(self.decoder.layers[i].attention, "psi"):
                layer.attention.kept = Kept(Sums(*before[2 * i : 2 * i + 2]))
            elif before:
                append(layer.attention, *before[2 * i : 2 * i + 2])
        logits = self.decoder.predict(tokens, memory, padding, state)
        kept = [layer.attention.kept for layer in state.layers]
        after = [one.own() if isinstance(one, Kept) else one.gather() for one in kept]
        return logits, *(tensor for pair in after for tensor in pair)


@pytest.mark.parametrize("name", NAMES)
def test_encoder_is_exported(name):
    module = Encode(small(name))
    program = export(module, (SOURCE,)).module()
    for tokens in (SOURCE, SOURCE.flip(0)):
        for found, wanted in zip(program(tokens), module(tokens), strict=True):
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_exported_with_its_state_as_tensors(name):
    module, kept = Step(small(name)), ()
    model = small(name)
    memory, padding = model.encoder.memory(SOURCE)
    for length in (1, 2, 3):
        given = (TARGET[:, :length], memory, padding, *kept)
        wanted = module(*given)
        if length == 3:
            program = export(module, given).module()
            for found, other in zip(program(*given), wanted, strict=True):
                torch.testing.assert_close(found, other)
        kept = wanted[1:]
    every = model.decoder.predict(TARGET[:, :3], memory, padding)
    torch.testing.assert_close(wanted[0][:, 0], every[:, -1])
