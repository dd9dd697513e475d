import pytest
import torch

from hyptrans.transformers import HyptransConfig, HyptransForConditionalGeneration
from tests.models.conftest import SMALL

NAMES = [
    *("hybonet_tiny", "hypformer_tiny", "hybonet_plus_tiny", "han_tiny", "hvt_tiny"),
    *("sphere_tiny", "euclidean_tiny", "euclidean_prenorm_tiny", "transformer"),
]
ASKED = {"output_hidden_states": True, "output_attentions": True}


@pytest.fixture(params=NAMES)
def fresh(request, library, tokenizer):
    """A model of fresh parameters, without dropout."""
    torch.manual_seed(1)
    config = HyptransConfig.of(tokenizer, request.param, dropout=0.0, **SMALL)
    return HyptransForConditionalGeneration(config).eval()


@pytest.fixture(scope="session")
def given(tokenizer):
    made = tokenizer(
        ["Good night.", "Tom saw it yesterday."],
        text_target=["Gute Nacht.", "Tom hat es gestern gesehen."],
        padding=True,
        return_tensors="pt",
    )
    labels = made.pop("labels")
    return {**made, "labels": labels.masked_fill(labels.eq(tokenizer.pad_token_id), -100)}


def test_final_states_produce_the_logits(fresh, given):
    with torch.no_grad():
        out = fresh(**given, **ASKED)
        plain = fresh(**given)
    layers, (rows, length), (_, target) = 2, given["input_ids"].shape, given["labels"].shape
    assert [tuple(one.shape) for one in out.encoder_hidden_states] == [(rows, length, 16)] * 3
    assert [tuple(one.shape) for one in out.decoder_hidden_states] == [(rows, target, 16)] * 3
    assert torch.equal(out.encoder_last_hidden_state, out.encoder_hidden_states[-1])
    found = fresh.decoder.logits(out.decoder_hidden_states[-1], None)
    torch.testing.assert_close(found, plain.logits, rtol=1e-4, atol=1e-5)
    sizes = {"encoder": (length, length), "decoder": (target, target), "cross": (target, length)}
    for name, size in sizes.items():
        weights = out[f"{name}_attentions"]
        assert [tuple(one.shape) for one in weights] == [(rows, 2, *size)] * layers
        for one in weights:
            torch.testing.assert_close(one.sum(-1), torch.ones(rows, 2, size[0]))
    assert plain.encoder_hidden_states is plain.decoder_hidden_states is None
    assert plain.encoder_attentions is plain.cross_attentions is None


def test_attention_weights_need_no_second_forward_pass(fresh, given):
    runs = []
    for side in (fresh.encoder, fresh.decoder):
        side.layers[0].register_forward_hook(lambda *_: runs.append(1))
    with torch.no_grad():
        fresh(**given, output_attentions=True)
    assert len(runs) == 2


def test_precomputed_encoder_states_respect_padding(fresh, given):
    labels = given["labels"]
    source = {name: given[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        states = fresh.get_encoder()(**source)
        assert torch.equal(
            fresh(encoder_outputs=states, labels=labels).logits, fresh(**given).logits
        )
        # a tuple says nothing of padding, the tokens do
        found = fresh(given["input_ids"], encoder_outputs=(states[0],), labels=labels)
        assert torch.equal(found.logits, fresh(**given).logits)
        for beam in (1, 3):
            found, wanted = (
                fresh.generate(**one, num_beams=beam, max_length=9)
                for one in ({"encoder_outputs": fresh.get_encoder()(**source)}, source)
            )
            assert torch.equal(found, wanted)


def test_cross_attention_of_the_last_layer_matches_align(model, ours, tokenizer):
    source, target = "Good night.", "Gute Nacht."
    made = tokenizer(source, text_target=target, return_tensors="pt")
    with torch.no_grad():
        out = model(**made, output_attentions=True)
    wanted = ours.align(source, target).weights
    torch.testing.assert_close(out.cross_attentions[-1][0].mean(0), wanted)


def test_generate_returns_states_and_weights_of_each_token(model, tokenizer):
    made = tokenizer(["Good night.", "No."], padding=True, return_tensors="pt")
    asked = {**ASKED, "return_dict_in_generate": True, "max_new_tokens": 4, "num_beams": 1}
    found = model.generate(**made, **asked)
    with torch.no_grad():
        every = model(**made, decoder_input_ids=found.sequences[:, :-1], **ASKED)
    assert len(found.decoder_hidden_states) == len(found.cross_attentions) == 4
    for step, states in enumerate(found.decoder_hidden_states):
        for layer, state in enumerate(states):
            wanted = every.decoder_hidden_states[layer][:, [step]]
            torch.testing.assert_close(state, wanted, rtol=1e-4, atol=1e-4)
    for step, weights in enumerate(found.decoder_attentions):
        wanted = every.decoder_attentions[0][:, :, [step], : step + 1]
        torch.testing.assert_close(weights[0], wanted, rtol=1e-4, atol=1e-4)
    assert found.encoder_hidden_states[0].shape == every.encoder_hidden_states[0].shape
