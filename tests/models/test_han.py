"""HAN is fairseq's Transformer but for the attention; its sizes and options."""

import math

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch.nn import functional as F

from hyptrans.fairseq.model import HypTransformer
from hyptrans.kernels.weights import one_mask
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.models.han import SIZES, HANConfig, HANParts
from tests.models.conftest import (
    SMALL,
    batch,
    build,
    dictionary,
    parameters_of_the_twin,
    small,
    task_of,
    trained,
)

SYMBOLS = dictionary()
EXACT = {"rtol": 0, "atol": 1e-9}
# fairseq takes the softmax of its decoder's attention to the source in float32
NEAR = {"rtol": 0, "atol": 2e-6}


class DotProductAttention(HyperbolicAttention):
    """The same projections, heads and residual around ordinary attention."""

    def points(self, numbers):
        return numbers

    def mix(self, query, key, value, *, allowed, is_causal):
        allowed, is_causal = one_mask(key, allowed, is_causal)
        p = self.attention_dropout if self.training else 0.0
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, is_causal=is_causal, dropout_p=p
        )


class EuclideanParts(HANParts):
    """HAN's parts with ordinary attention: the Transformer."""

    def attention(self, role, *, before):
        return DotProductAttention(
            self.side.width,
            self.side.heads,
            coordinates="cartesian",
            dropout=self.cfg.dropout,
            attention_dropout=self.cfg.attention_dropout,
            memory_width=role.memory_width,
            causal=role.causal,
        )


class Euclidean(HypTransformer):
    """The skeleton with Euclidean parts."""

    parts, config = EuclideanParts, HANConfig


def copy_weights(twin, model):
    """Copy all weights of fairseq's Transformer."""
    for ours, theirs in [(model.encoder, twin.encoder), (model.decoder, twin.decoder)]:
        _copy(ours.embed_tokens.weight, theirs.embed_tokens.weight)
        if theirs.embed_positions.__class__.__name__.startswith("Learned"):
            _copy(ours.embed_positions.vectors, theirs.embed_positions.weight[2:])
        for layer, their in zip(ours.layers, theirs.layers, strict=True):
            own = their.self_attn
            _stack(layer.attention.qkv, own.q_proj, own.k_proj, own.v_proj)
            _finish(layer.attention, own.out_proj, their.self_attn_layer_norm)
            _stack(layer.feed_forward.expand, their.fc1)
            _finish(layer.feed_forward, their.fc2, their.final_layer_norm, "contract")
            if ours is model.decoder:
                cross = their.encoder_attn
                _stack(layer.cross_attention.q, cross.q_proj)
                _stack(layer.cross_attention.kv, cross.k_proj, cross.v_proj)
                _finish(layer.cross_attention, cross.out_proj, their.encoder_attn_layer_norm)
    _copy(model.decoder.logits.weight, twin.decoder.output_projection.weight)


def _copy(ours, theirs):
    with torch.no_grad():
        ours.copy_(theirs)


def _stack(ours, *theirs):
    _copy(ours.weight, torch.cat([linear.weight for linear in theirs]))
    _copy(ours.bias, torch.cat([linear.bias for linear in theirs]))


def _finish(ours, linear, norm, name="out"):
    _stack(getattr(ours, name), linear)
    _copy(ours.residual.norm.weight, norm.weight)
    _copy(ours.residual.norm.bias, norm.bias)


def pair(**options):
    """fairseq's Transformer and the skeleton with its weights, in float64."""
    torch.manual_seed(0)
    twin = build("euclidean_tiny", **SMALL, **options).double()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=rng))
    cfg = HANConfig()
    for name, value in {**SMALL, **options}.items():
        setattr(cfg, name, value)
    model = Euclidean.build_model(cfg, task_of()).double()
    copy_weights(twin, model)
    return twin, model


def assert_equal_outputs(twin, model, sentences):
    source, previous = batch(sentences, SYMBOLS)
    pad = SYMBOLS.pad()
    states = [m.encoder(source)["encoder_out"][0][(source != pad).T] for m in (twin, model)]
    torch.testing.assert_close(*states, **EXACT)
    logits = [m(source, None, previous)[0][previous != pad] for m in (twin, model)]
    torch.testing.assert_close(*logits, **NEAR)
    assert logits[0].std() > 0.1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"encoder_learned_pos": False, "decoder_learned_pos": False},
        {"share_decoder_input_output_embed": True},
        {"share_all_embeddings": True},
    ],
    ids=["separate", "sinusoidal", "shared_output", "shared"],
)
def test_with_ordinary_attention_the_skeleton_is_fairseqs_transformer(options, sentences):
    twin, model = pair(**options)
    assert_equal_outputs(twin.eval(), model.eval(), sentences)


def test_dropout_acts_where_fairseqs_does(sentences, monkeypatch):
    twin, model = pair(dropout=0.3, attention_dropout=0.2)
    usual = F.scaled_dot_product_attention

    def dropout(x, p=0.5, training=True, inplace=False):
        # no draws, so that the order of dimensions does not matter, but as sensitive to its place
        return x * (1 + p * (5 * x).sin()) if training else x

    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
        identity = torch.eye(k.size(-2), dtype=k.dtype).expand(*k.shape[:-1], -1)
        weights = usual(q, k, identity, attn_mask=attn_mask, is_causal=is_causal)
        return dropout(weights, dropout_p) @ v

    before = twin(*_inputs(sentences))[0]
    monkeypatch.setenv("HYPTRANS_KERNELS", "eager")
    monkeypatch.setattr(F, "dropout", dropout)
    monkeypatch.setattr(F, "scaled_dot_product_attention", attention)
    assert_equal_outputs(twin.train(), model.train(), sentences)
    assert (twin(*_inputs(sentences))[0] - before).abs().max() > 0.01


def _inputs(sentences):
    source, previous = batch(sentences, SYMBOLS)
    return source, None, previous


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
        ratio = trained(build(f"han_{size}", task)) / parameters_of_the_twin(size, task)
    assert math.isclose(ratio, 1, abs_tol=0.03)


def test_big_is_the_big_transformer():
    with torch.device("meta"):
        model = build("han_big")
    layer = model.decoder.layers[0]
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (6, 6)
    assert (layer.attention.out.out_features, layer.attention.heads) == (1024, 16)
    assert layer.feed_forward.expand.out_features == 4096


def test_options_reach_every_attention(sentences):
    options = {"han_coordinates": "cartesian", "han_weights": "sigmoid", "han_max_radius": 4.0}
    model = build("han_tiny", **SMALL, **options, dropout=0.3, attention_dropout=0.2)
    attentions = [m for m in model.modules() if isinstance(m, HyperbolicAttention)]
    assert len(attentions) == 6
    for attention in attentions:
        assert attention.coordinates == "cartesian"
        assert attention.c is not None
        assert attention.max_radius == 4.0
        assert (attention.attention_dropout, attention.residual.dropout) == (0.2, 0.3)


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
