"""Small models with dictionaries of their own, built as fairseq builds them."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq import models
from fairseq.data import Dictionary

import hyptrans.fairseq  # noqa: F401 - registers the architectures
import recipes.study.candidates  # noqa: F401 - registers those that the package left out
import tests.models.fifth  # noqa: F401 - registers one more
from hyptrans.fairseq.model import HypTransformer
from hyptrans.seq2seq.sizes import SIZES

SMALL = {
    "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 32,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 32,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "max_source_positions": 64,
    "max_target_positions": 64,
}

# one without a size `tiny` fails the tests, as it must have one
ARCHITECTURES = sorted(
    f"{name}_tiny"
    for name, model in models.MODEL_REGISTRY.items()
    if issubclass(model, HypTransformer) and not name.endswith(tuple(SIZES))
)


def dictionary(words=20, prefix="w"):
    entries = Dictionary()
    for i in range(words):
        entries.add_symbol(f"{prefix}{i}")
    return entries


def task_of(source=None, target=None):
    source = source or dictionary()
    return SimpleNamespace(source_dictionary=source, target_dictionary=target or source)


def build(arch, task=None, **options):
    """A model as ``fairseq-train --arch`` builds it, with the given options."""
    if arch in models.MODEL_DATACLASS_REGISTRY:
        cfg = models.MODEL_DATACLASS_REGISTRY[arch]()
        for name, value in options.items():
            assert hasattr(cfg, name), name
            setattr(cfg, name, value)
        cfg._name = arch
        return models.MODEL_REGISTRY[arch].build_model(cfg, task or task_of())
    cfg = Namespace(_name=arch, arch=arch, **options)
    models.ARCH_CONFIG_REGISTRY[arch](cfg)
    return models.ARCH_MODEL_REGISTRY[arch].build_model(cfg, task or task_of())


def small(arch, task=None, **options):
    """A small float64 model in evaluation, its parameters moved as by some training."""
    torch.manual_seed(0)
    model = build(arch, task, **SMALL, **options).double().eval()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_tokens" not in name:
                noise = torch.randn(parameter.shape, generator=rng, dtype=torch.float64)
                parameter.add_(0.1 * noise)
    return model


@pytest.fixture
def sentences(rng):
    """Pairs of token lists of many lengths, without the special symbols."""
    lengths = torch.randint(1, 12, (8, 2), generator=rng).tolist()
    return [
        tuple(torch.randint(4, 24, (n,), generator=rng).tolist() for n in pair) for pair in lengths
    ]


def left_padded(rows, pad):
    width = max(map(len, rows))
    return torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows])


def right_padded(rows, pad):
    width = max(map(len, rows))
    return torch.tensor([list(row) + [pad] * (width - len(row)) for row in rows])


def batch(pairs, symbols):
    """Source tokens (left padded, as fairseq does) and previous output tokens of a batch."""
    source = left_padded([[*s, symbols.eos()] for s, _ in pairs], symbols.pad())
    previous = right_padded([[symbols.eos(), *t] for _, t in pairs], symbols.pad())
    return source, previous


def sample_of(pairs, symbols):
    """A batch as fairseq's criteria take it."""
    source, previous = batch(pairs, symbols)
    target = right_padded([[*t, symbols.eos()] for _, t in pairs], symbols.pad())
    inputs = {"src_tokens": source, "src_lengths": None, "prev_output_tokens": previous}
    ntokens = int(target.ne(symbols.pad()).sum())
    return {"net_input": inputs, "target": target, "ntokens": ntokens}


def trained(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def with_option(name):
    """Architectures that have an option; the example in these tests ignores its curvature."""
    configurations = {arch: models.MODEL_DATACLASS_REGISTRY[arch]() for arch in ARCHITECTURES}
    return [a for a, cfg in configurations.items() if hasattr(cfg, name) and a != "fifth_tiny"]
