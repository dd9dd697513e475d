"""What users of the library transformers expect of any model: inputs, names, saving, hashes."""

import logging
import os

import pytest
import torch

import hyptrans
from hyptrans.support.errors import UserError
from hyptrans.transformers import HyptransConfig, HyptransForConditionalGeneration

TEXT = "Tom saw it yesterday evening."


@pytest.fixture
def given(tokenizer):
    return tokenizer(["Good night.", TEXT], padding=True, return_tensors="pt")


def test_past_key_values_names_the_cache(model, given):
    tokens = torch.tensor([[2, 9, 7], [2, 8, 6]])
    with torch.no_grad():
        first = model(**given, decoder_input_ids=tokens[:, :2], use_cache=True)
        second = model(**given, decoder_input_ids=tokens[:, 2:], past_key_values=first.cache)
        wanted = model(**given, decoder_input_ids=tokens).logits
    torch.testing.assert_close(second.logits[:, -1], wanted[:, -1], rtol=1e-4, atol=1e-4)


def test_inputs_embeds_match_input_ids_and_have_gradients(model, given):
    tokens = torch.tensor([[2, 9, 1], [2, 8, 6]])
    mask = tokens.ne(1).long()
    wanted = model(**given, decoder_input_ids=tokens).logits
    source = model.get_input_embeddings()(given.input_ids).detach().requires_grad_()
    target = model.decoder.embed_tokens(tokens).detach().requires_grad_()
    found = model(
        inputs_embeds=source,
        attention_mask=given.attention_mask,
        decoder_inputs_embeds=target,
        decoder_attention_mask=mask,
    ).logits
    real = mask.bool()
    torch.testing.assert_close(found[real], wanted[real])
    found[real].logsumexp(-1).sum().backward()
    assert source.grad[given.attention_mask.bool()].norm(dim=-1).min() > 0
    assert target.grad[real].norm(dim=-1).min() > 0
    assert source.grad[given.attention_mask.eq(0)].eq(0).all()
    # the tables are used again afterwards
    assert torch.equal(model(**given, decoder_input_ids=tokens).logits, wanted)


def test_generate_accepts_inputs_embeds(model, given, tokenizer):
    made = model.generate(
        inputs_embeds=model.get_input_embeddings()(given.input_ids),
        attention_mask=given.attention_mask,
    )
    assert torch.equal(made, model.generate(**given))


def test_input_ids_and_inputs_embeds_together_are_refused(model, given):
    vectors = model.get_input_embeddings()(given.input_ids)
    with pytest.raises(UserError, match="input_ids or inputs_embeds, not both"):
        model(**given, inputs_embeds=vectors, decoder_input_ids=given.input_ids)
    with pytest.raises(UserError, match="decoder_inputs_embeds cannot use a cache"):
        model(**given, decoder_inputs_embeds=vectors, use_cache=True)


def test_generate_logs_no_warning(model, given, caplog):
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    try:
        model.generate(**given, max_length=20)
        model.generate(**given)
    finally:
        logger.removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("beams", [1, 3])
def test_stop_strings_end_a_translation(model, tokenizer, beams):
    given = tokenizer([TEXT], return_tensors="pt")
    whole = tokenizer.batch_decode(model.generate(**given), skip_special_tokens=True)[0]
    stop = whole.split()[2]
    made = model.generate(**given, num_beams=beams, stop_strings=[stop], tokenizer=tokenizer)
    found = tokenizer.batch_decode(made, skip_special_tokens=True)[0]
    assert stop in found
    assert len(found) < len(whole)
    with pytest.raises(ValueError, match="tokenizer"):
        model.generate(**given, stop_strings=[stop])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_dtype_auto_takes_the_precision_of_the_folder(dtype, model, tokenizer, library, tmp_path):
    model.to(dtype).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = library.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dtype="auto")
    assert {parameter.dtype for parameter in found.parameters()} == {dtype}
    other = library.AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert {parameter.dtype for parameter in other.parameters()} == {torch.float32}


def test_using_a_tokenizer_keeps_its_datasets_fingerprint(library, place):
    hash_of = pytest.importorskip("datasets").fingerprint.Hasher.hash
    tokenizer, other = (library.AutoTokenizer.from_pretrained(place) for _ in range(2))
    before = hash_of(tokenizer)
    tokenizer(["Good night. " * 600], text_target=["Gute Nacht."])
    assert hash_of(tokenizer) == before == hash_of(other)


def test_a_bundled_model_loads_by_name_without_the_hub(library, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("asks the hub"))
    tokenizer = library.AutoTokenizer.from_pretrained("tatoeba-en-de")
    assert len(tokenizer(["Good night."])["input_ids"][0]) > 1
    for auto in (library.AutoModelForSeq2SeqLM, library.AutoModel):
        assert auto.from_pretrained("tatoeba-en-de").config.architecture.startswith("hybonet")
    for config in (library.AutoConfig, HyptransConfig):
        assert config.from_pretrained("tatoeba-en-de").model_type == "hyptrans"


def test_saving_writes_a_card_but_keeps_an_existing_one(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "Translates from `en` to `de`: `hybonet_plus_iwslt_d64` of hyptrans" in card
    assert f'hyptrans.load("{tmp_path.name}")' in card
    # the scores of other parameters
    (tmp_path / "README.md").write_text("---\nmodel-index: []\n---\n38.07")
    model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == card
    (tmp_path / "README.md").write_text("mine")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    assert "README.md" in os.listdir(tmp_path)
    assert hyptrans.load(tmp_path).translate("Good night.") == "Gute Nacht!"


def test_error_messages_use_python_option_names(tokenizer):
    sizes = {"encoder_embed_dim": 10, "encoder_attention_heads": 4}
    config = HyptransConfig.of(tokenizer, "hybonet_tiny", **sizes)
    with pytest.raises(
        UserError, match="encoder_embed_dim 10 is not divisible by encoder_att"
    ) as no:
        HyptransForConditionalGeneration(config)
    assert "--" not in str(no.value)
    with pytest.raises(UserError, match="has no option 'width'"):
        HyptransConfig.of(tokenizer, "hybonet_tiny", width=3)
    with pytest.raises(UserError, match="one dictionary for both languages") as no:
        HyptransConfig.of(tokenizer, "hybonet_tiny", share_all_embeddings=True)
    assert "--" not in str(no.value)
