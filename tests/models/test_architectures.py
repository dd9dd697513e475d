import math

import pytest
import torch
from fairseq import models

from hyptrans.geometry import lorentz
from hyptrans.kernels import backend
from hyptrans.seq2seq.sizes import SIZES
from tests.models.conftest import (
    ARCHITECTURES,
    SMALL,
    batch,
    build,
    dictionary,
    small,
    task_of,
    trained,
    with_option,
)

SYMBOLS = dictionary()
EXACT = {"rtol": 0, "atol": 1e-9}

pytestmark = pytest.mark.parametrize("arch", ARCHITECTURES)


def test_both_dropout_options_reach_every_block(arch):
    model = small(arch, dropout=0.25, attention_dropout=0.5)
    for side in (model.encoder, model.decoder):
        blocks = {"positions": side.embed_positions}
        for number, layer in enumerate(side.layers):
            blocks |= {f"{number} {name}": block for name, block in layer.named_children()}
        assert len(blocks) == 1 + len(side.layers) * (2 if side is model.encoder else 3)
        for name, block in blocks.items():
            found = dropouts(block)
            inputs = found.pop("qkv", found.pop("q", found.pop("kv", set())))
            assert inputs <= {0.5}, name
            # a norm of positions has nothing to drop
            rest = set.union(*found.values()) - {0.0}
            wanted = {0.25} | ({0.5} if "attention" in name and not inputs else set())
            assert rest == wanted, name


def dropouts(block):
    """The probabilities in a block, by the last name of the module that has them."""
    found = {"": set()}
    for name, module in block.named_modules():
        values = (getattr(module, kind, None) for kind in ("dropout", "attention_dropout"))
        numbers = {value for value in values if isinstance(value, float)}
        if isinstance(module, torch.nn.Dropout):
            numbers.add(module.p)
        found.setdefault(name.rpartition(".")[2], set()).update(numbers)
    return found


def test_kernels_and_eager_formulas_give_the_same_logits_and_gradients(
    arch, sentences, monkeypatch
):
    model, results = small(arch, dropout=0.0).train(), []
    source, previous = batch(sentences, SYMBOLS)
    for kernels in ("numba", "eager"):
        monkeypatch.setattr(backend, "CHOSEN", kernels)
        logits = model(source, None, previous)[0]
        total = logits.log_softmax(-1)[previous != SYMBOLS.pad()].square().sum()
        parameters = [*filter(lambda p: p.requires_grad, model.parameters())]
        results.append([logits, *torch.autograd.grad(total, parameters)])
    for ours, expected in zip(*results, strict=True):
        scale = expected.abs().max().clamp_min(1).item()
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-10 * scale)


def test_reordered_beams_continue_their_own_prefix(arch, sentences, rng):
    model = small(arch)
    source, previous = batch(sentences, SYMBOLS)
    previous = previous.where(previous != SYMBOLS.pad(), 5)[:, :6]
    order = torch.randint(len(sentences), (5,), generator=rng)
    # where no gradients are wanted, other kernels decode
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            encoder_out, state = model.encoder(source), {}
            for i in range(4):
                model.decoder(previous[:, : i + 1], encoder_out, state)
            model.decoder.reorder_incremental_state_scripting(state, order)
            encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
            step, _ = model.decoder(previous[order, :5], encoder_out, state)
            whole = model(source[order], None, previous[order, :5])[0]
        torch.testing.assert_close(step[:, 0], whole[:, 4], **EXACT)


def test_no_output_depends_on_a_later_token(arch, sentences):
    model = small(arch)
    source, previous = batch(sentences[:1], SYMBOLS)
    previous = torch.cat([previous, torch.full((1, 3), 7)], dim=1)
    changed = previous.clone()
    changed[0, -3:] = 9
    before, after = model(source, None, previous)[0], model(source, None, changed)[0]
    assert torch.equal(before[:, :-3], after[:, :-3])
    assert not torch.equal(before, after)


def test_word_order_matters_on_both_sides(arch):
    model = small(arch)
    source, previous = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[2, 8, 9]])
    outputs = [
        model(s, None, p)[0][0, -1]
        for s, p in [
            (source, previous),
            (source[:, [1, 0, 2, 3]], previous),
            (source, previous[:, [1, 0, 2]]),
        ]
    ]
    assert (outputs[0] - outputs[1]).abs().max() > 1e-6
    assert (outputs[0] - outputs[2]).abs().max() > 1e-6


def test_encoder_gives_the_states_of_all_layers_and_names_their_spaces(arch, sentences):
    options = {"curvature": 0.5} if arch in with_option("curvature") else {}
    model = small(arch, **options)
    source, _ = batch(sentences, SYMBOLS)
    out = model.encoder(source, return_all_hiddens=True)
    assert len(out["encoder_states"]) == 1 + SMALL["encoder_layers"]
    shapes = {tuple(state.shape) for state in out["encoder_states"]}
    width = model.encoder.embed_tokens(source).size(-1)
    assert shapes == {(source.size(1), source.size(0), width)}
    assert torch.equal(out["encoder_states"][-1], out["encoder_out"][0])
    assert torch.equal(out["encoder_padding_mask"][0], source == SYMBOLS.pad())
    assert model.encoder(source)["encoder_states"] == []
    spaces = model.encoder.state_spaces()
    assert len({space.kind for space in spaces}) == 1
    for state, space in zip(out["encoder_states"], spaces, strict=True):
        if space.kind == "lorentz":
            assert lorentz.violation(state, c=space.c).max() < 1e-9
            assert lorentz.violation(state, c=space.c * 1.01).max() > 1e-6
        elif space.kind == "poincare":
            assert state.norm(dim=-1).max() < space.c**-0.5


def test_shared_embeddings_are_one_parameter(arch):
    for option, tables in (("decoder_input_output_embed", 2), ("all_embeddings", 1)):
        for shared in (False, True):
            model = build(arch, **SMALL, **{f"share_{option}": shared})
            matrices = [p for p in model.parameters() if p.dim() == 2 and len(p) == len(SYMBOLS)]
            assert len(matrices) == (tables if shared else 3)


def test_sinusoidal_positions_are_not_trained(arch, sentences):
    learned = build(arch, **SMALL)
    fixed = build(arch, **SMALL, encoder_learned_pos=False, decoder_learned_pos=False)
    saved = 2 * SMALL["max_source_positions"] * SMALL["encoder_embed_dim"]
    assert trained(learned) - trained(fixed) == saved
    # so that a checkpoint may be loaded for longer sentences
    longer = {**SMALL, "max_source_positions": 99, "max_target_positions": 88}
    longer = build(arch, **longer, encoder_learned_pos=False, decoder_learned_pos=False)
    longer.load_state_dict(fixed.state_dict(), strict=True)
    source, previous = batch(sentences, SYMBOLS)
    assert torch.isfinite(fixed(source, None, previous)[0]).all()


def test_every_size_matches_its_baselines_parameter_count(arch):
    kind, task = arch.removesuffix("_tiny"), task_of(dictionary(4000))
    with torch.device("meta"):
        for size in (size for size in SIZES if f"{kind}_{size}" in models.MODEL_REGISTRY):
            ours, twin = (trained(build(f"{one}_{size}", task)) for one in (kind, "euclidean"))
            assert math.isclose(ours / twin, 1, abs_tol=0.03), size
