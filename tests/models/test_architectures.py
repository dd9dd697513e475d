"""What every architecture must do, whatever its geometry."""

import math

import pytest
import torch
from fairseq import models

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
)

SYMBOLS = dictionary()
EXACT = {"rtol": 0, "atol": 1e-9}

pytestmark = pytest.mark.parametrize("arch", ARCHITECTURES)


def log_probabilities(model, source, previous):
    return model(source, None, previous)[0].log_softmax(-1)


@pytest.fixture(params=[True, False], ids=["gradients", "none"])
def gradients(request):
    """Whether gradients are wanted: where none are, other kernels decode."""
    with torch.set_grad_enabled(request.param):
        yield


@pytest.mark.usefixtures("gradients")
def test_steps_equal_the_whole_sequence_in_a_ragged_batch(arch, sentences):
    model = small(arch)
    source, previous = batch(sentences, SYMBOLS)
    whole = model(source, None, previous)[0]
    encoder_out = model.encoder(source)
    state: dict = {}
    for i in range(previous.size(1)):
        step, _ = model.decoder(previous[:, : i + 1], encoder_out, state)
        real = previous[:, i] != SYMBOLS.pad()
        torch.testing.assert_close(step[real, 0], whole[real, i], **EXACT)


def test_both_dropouts_reach_every_block(arch):
    if arch.startswith("fifth"):
        pytest.skip("an example, without dropout")
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
        found.setdefault(name.rpartition(".")[2], set()).update(numbers)
    return found


@pytest.mark.usefixtures("gradients")
def test_reordered_beams_go_on_as_their_own_prefix(arch, sentences, rng):
    model = small(arch)
    source, previous = batch(sentences, SYMBOLS)
    previous = previous.where(previous != SYMBOLS.pad(), 5)[:, :6]
    encoder_out, state = model.encoder(source), {}
    for i in range(4):
        model.decoder(previous[:, : i + 1], encoder_out, state)
    order = torch.randint(len(sentences), (5,), generator=rng)
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


def test_every_parameter_that_learns_gets_a_finite_gradient(arch, sentences):
    model = small(arch)
    log_probabilities(model, *batch(sentences, SYMBOLS))[..., 4].sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name


def test_encoder_gives_the_states_of_all_layers(arch, sentences):
    model = small(arch)
    source, _ = batch(sentences, SYMBOLS)
    out = model.encoder(source, return_all_hiddens=True)
    assert len(out["encoder_states"]) == 1 + SMALL["encoder_layers"]
    shapes = {tuple(state.shape) for state in out["encoder_states"]}
    width = model.encoder.embed_tokens(source).size(-1)
    assert shapes == {(source.size(1), source.size(0), width)}
    assert torch.equal(out["encoder_states"][-1], out["encoder_out"][0])
    assert torch.equal(out["encoder_padding_mask"][0], source == SYMBOLS.pad())
    assert model.encoder(source)["encoder_states"] == []


@pytest.mark.parametrize(
    ("option", "tables"),
    [(None, 3), ("share_decoder_input_output_embed", 2), ("share_all_embeddings", 1)],
)
def test_shared_embeddings_are_one_parameter(arch, option, tables):
    model = small(arch, **({option: True} if option else {}))
    vocabulary = len(SYMBOLS)
    matrices = [p for p in model.parameters() if p.dim() == 2 and p.size(0) == vocabulary]
    assert len(matrices) == tables


def test_share_all_embeddings_needs_one_dictionary_and_one_width(arch):
    with pytest.raises(ValueError, match="--joined-dictionary"):
        small(arch, task_of(dictionary(), dictionary(prefix="v")), share_all_embeddings=True)
    sizes = {**SMALL, "decoder_embed_dim": 32}
    with pytest.raises(ValueError, match="--decoder-embed-dim to equal --encoder-embed-dim"):
        build(arch, share_all_embeddings=True, **sizes)


def test_encoder_and_decoder_may_differ_in_size(arch, sentences):
    sizes = {**SMALL, "decoder_embed_dim": 24, "decoder_attention_heads": 3, "decoder_layers": 1}
    model = build(arch, **sizes).eval()
    assert torch.isfinite(model(*_with_none(batch(sentences, SYMBOLS)))[0]).all()


def _with_none(tensors):
    source, previous = tensors
    return source, None, previous


def test_sinusoidal_positions_are_not_trained(arch, sentences):
    learned = build(arch, **SMALL)
    fixed = build(arch, **SMALL, encoder_learned_pos=False, decoder_learned_pos=False)
    saved = 2 * SMALL["max_source_positions"] * SMALL["encoder_embed_dim"]
    assert trained(learned) - trained(fixed) == saved
    # so that a checkpoint may be loaded for longer sentences
    longer = {**SMALL, "max_source_positions": 99, "max_target_positions": 88}
    longer = build(arch, **longer, encoder_learned_pos=False, decoder_learned_pos=False)
    longer.load_state_dict(fixed.state_dict(), strict=True)
    assert torch.isfinite(fixed(*_with_none(batch(sentences, SYMBOLS)))[0]).all()


@pytest.mark.parametrize("name", ["attention_heads", "layers", "ffn_embed_dim"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("size", [0, -1])
def test_sizes_below_one_are_refused(size, side, name, arch):
    flag = f"--{side}-{name.replace('_', '-')}"
    with pytest.raises(ValueError, match=f"{flag} must be at least 1, got {size}"):
        build(arch, **{**SMALL, f"{side}_{name}": size})


def test_heads_that_do_not_divide_the_width_are_refused(arch):
    sizes = {**SMALL, "encoder_attention_heads": 3}
    with pytest.raises(ValueError, match="--encoder-embed-dim 16 is not divisible by --encoder-a"):
        build(arch, **sizes)


def test_a_sentence_longer_than_the_model_takes_is_refused(arch):
    model = small(arch)
    source = torch.full((1, 65), 5)
    with pytest.raises(ValueError, match="has 65 tokens, the model takes 64: raise --max-source"):
        model.encoder(source)


def test_every_size_has_as_many_parameters_as_its_twin(arch):
    kind = arch.removesuffix("_tiny")
    task = task_of(dictionary(4000))
    for size in SIZES:
        if f"{kind}_{size}" in models.MODEL_REGISTRY and size not in ("base", "big"):
            ratio = trained(build(f"{kind}_{size}", task)) / trained(
                build(f"euclidean_{size}", task)
            )
            assert math.isclose(ratio, 1, abs_tol=0.03), (size, ratio)
