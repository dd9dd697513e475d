"""Every front end initializes, applies dropout and computes a model in the same way.

The doors are the core (:mod:`hyptrans.inference.architecture`), ``fairseq-train --arch`` and the
library transformers.
"""

import argparse
import dataclasses

import pytest
import torch
from geoopt import ManifoldParameter
from scipy.stats import ks_2samp
from torch.utils._python_dispatch import TorchDispatchMode

from hyptrans.inference.architecture import configuration
from hyptrans.models.euclidean import EuclideanParts
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support.errors import UserError
from hyptrans.train import settings
from tests.models.conftest import SMALL, batch, build, dictionary, task_of

NAMES = ("hybonet", "hybonet_plus", "hypformer", "han", "hvt", "sphere")
TWINS = ("euclidean", "euclidean_prenorm", "euclidean_postnorm")
USUAL = {**SMALL, "dropout": 0.0, "attention_dropout": 0.0}
OTHERS = {
    "curvature": 0.5,
    "han_max_radius": 0.01,
    "hypformer_focus_power": 3.0,
    "decoder_output_dim": 24,
    **{f"{side}_embed_dim": 24 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_embed_dim": 40 for side in ("encoder", "decoder")},
    **{f"{side}_layers": 1 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 4 for side in ("encoder", "decoder")},
    **dict.fromkeys(("max_source_positions", "max_target_positions"), 32),
}
WITHOUT_EFFECT = {
    # there is no such norm where norms are behind the blocks
    *((name, "no_decoder_final_norm") for name in ("euclidean", "euclidean_postnorm")),
}
WORDS = dictionary(200)
LEAST_P = 1e-7
"""Significance level of a Kolmogorov-Smirnov test; thousands of parameters are compared."""


def by_core(arch, **options):
    model = ARCHITECTURES[arch].build(configuration(arch, options), WORDS, WORDS)
    return model, model


def by_fairseq(arch, **options):
    model = build(arch, task_of(WORDS), **options)
    return model, lambda source, previous: model(source, None, previous)[0]


def by_transformers(arch, **options):
    library = pytest.importorskip("hyptrans.transformers")
    sizes = {"source_vocab_size": len(WORDS), "vocab_size": len(WORDS)}
    config = library.HyptransConfig(architecture=arch, options=options, **sizes)
    model = library.HyptransForConditionalGeneration(config)
    return model, lambda source, previous: model(source, decoder_input_ids=previous).logits


DOORS = (by_core, by_fairseq, by_transformers)


DRAWING = ("bernoulli", "bernoulli_", "native_dropout", "rand", "randint", "uniform_")


class Draws(TorchDispatchMode):
    """Counts operators that draw random numbers."""

    count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.count += operator.overloadpacket.__name__ in DRAWING
        return operator(*args, **(kwargs or {}))


def learned(named):
    """Parameters by our names; fairseq's own Transformer has others."""
    found = EuclideanParts.current_names(dict(named))
    return {name: parameter for name, parameter in found.items() if name != "version"}


def behavior(door, arch, **options):
    """Shapes, draws of a training step, and logits of parameters that only names decide."""
    torch.manual_seed(0)
    model, run = door(arch, **options)
    parameters = learned(model.named_parameters())
    draws_of_parameters = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in parameters.items():
            # points would leave their manifold, and curvatures start where the option says
            if not isinstance(parameter, ManifoldParameter) and not name.endswith("curvature.raw"):
                parameter.copy_(0.4 * torch.randn(parameter.shape, generator=draws_of_parameters))
    source, previous = batch([([5, 6, 7], [8, 9, 10, 11]), ([12, 13], [5])], WORDS)
    model.train()
    with Draws() as draws:
        run(source, previous)
    with torch.no_grad():
        logits = model.eval() and run(*batch([([5, 6, 7], [8, 9, 10, 11])], WORDS))
    kinds = {name: (tuple(p.shape), type(p).__name__) for name, p in parameters.items()}
    return kinds, draws.count, logits.round(decimals=3).tolist()


def assert_same_distributions(found, wanted):
    assert found.keys() == wanted.keys()
    for name, one in found.items():
        assert one.shape == wanted[name].shape, name
        both = [parameter.detach() for parameter in (one, wanted[name])]
        rows_of_zeros = [parameter.eq(0).all(-1).sum() for parameter in both]
        assert rows_of_zeros[0] == rows_of_zeros[1], name
        method = "exact" if one.numel() < 50 else "asymp"
        test = ks_2samp(*(parameter.flatten().numpy() for parameter in both), method=method)
        assert test.pvalue > LEAST_P, name


def other_value(field):
    if choices := field.metadata.get("choices"):
        return next(value for value in choices if value != field.default)
    if isinstance(field.default, bool):
        return not field.default
    return OTHERS.get(field.name, 0.5)


@pytest.mark.parametrize("name", [*NAMES, *TWINS])
def test_hyptrans_train_takes_every_option_as_its_type(name):
    arch, parser = f"{name}_tiny", argparse.ArgumentParser()
    settings.add_options(parser, arch)
    for field in dataclasses.fields(ARCHITECTURES[arch].config):
        value = 1.5 if field.name == "hypformer_focus_power" else other_value(field)
        found = getattr(parser.parse_args(settings.words({field.name: value})), field.name)
        assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("name", [*NAMES, *TWINS])
def test_every_front_end_applies_or_refuses_every_option(name):
    arch = f"{name}_tiny"
    usual = {door: behavior(door, arch, **USUAL) for door in DOORS}
    for field in dataclasses.fields(ARCHITECTURES[arch].config):
        found = []
        for door in DOORS:
            try:
                changed = behavior(door, arch, **USUAL | {field.name: other_value(field)})
            except (ValueError, UserError):
                changed = "refused"
            if (name, field.name) not in WITHOUT_EFFECT:
                assert changed != usual[door], (field.name, door.__name__)
            found.append(changed)
        for of_door in zip(*found, strict=True):
            assert of_door[1:] == of_door[:-1], field.name


@pytest.mark.parametrize("name", [*NAMES, *TWINS])
def test_every_front_end_initializes_from_the_same_distribution(name):
    options = {} if name == "hvt" else {"decoder_embed_dim": 64, "decoder_attention_heads": 2}
    for more in ({}, options):
        models = []
        for seed, door in enumerate(DOORS):
            torch.manual_seed(seed)
            model, _ = door(f"{name}_tiny", **more)
            models.append(learned(model.named_parameters()))
        first, *others = models
        for other in others:
            assert_same_distributions(other, first)


@pytest.mark.parametrize("arch", ["euclidean_prenorm_tiny", "euclidean_postnorm_tiny"])
def test_a_fresh_model_with_tied_tables_starts_with_a_small_loss(arch):
    model, _ = by_core(arch, share_all_embeddings=True)
    source, previous = batch([([5, 6, 7], [8, 9, 10, 11])], WORDS)
    log_p = model(source, previous).log_softmax(-1)
    # the first loss of equally likely words is ln V = 5.3; tables of N(0, 1) made it 125
    assert -log_p[..., 20:].mean() < 12
