"""What users of the library transformers expect of any model: inputs, names, saving, hashes."""

import logging

import pytest
import torch

TEXT = "Tom saw it yesterday evening."


@pytest.fixture
def given(tokenizer):
    return tokenizer(["Good night.", TEXT], padding=True, return_tensors="pt")


def test_past_key_values_is_another_name_of_the_cache(model, given):
    tokens = torch.tensor([[2, 9, 7], [2, 8, 6]])
    with torch.no_grad():
        first = model(**given, decoder_input_ids=tokens[:, :2], use_cache=True)
        second = model(**given, decoder_input_ids=tokens[:, 2:], past_key_values=first.cache)
        wanted = model(**given, decoder_input_ids=tokens).logits
    torch.testing.assert_close(second.logits[:, -1], wanted[:, -1], rtol=1e-4, atol=1e-4)


def test_a_translation_may_end_right_after_its_prefix(model, ours, tokenizer):
    given = tokenizer(["Good night."], return_tensors="pt")
    begun = torch.tensor([[2, *ours._target.rows("Gute Nacht!")[0][:-1]]])
    made = model.generate(**given, decoder_input_ids=begun)
    assert tokenizer.batch_decode(made, skip_special_tokens=True) == ["Gute Nacht!"]
    assert made.tolist() == [[*begun[0].tolist(), 2]]


def test_generate_logs_no_warning(model, given, caplog):
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    try:
        model.generate(**given, max_length=20)
        model.generate(**given)
    finally:
        logger.removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_auto_is_the_precision_of_the_folder(dtype, model, tokenizer, library, tmp_path):
    model.to(dtype).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = library.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dtype="auto")
    assert {parameter.dtype for parameter in found.parameters()} == {dtype}
    other = library.AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert {parameter.dtype for parameter in other.parameters()} == {torch.float32}


def test_use_changes_nothing_by_which_datasets_knows_a_tokenizer(library, place):
    hash_of = pytest.importorskip("datasets").fingerprint.Hasher.hash
    tokenizer, other = (library.AutoTokenizer.from_pretrained(place) for _ in range(2))
    before = hash_of(tokenizer)
    tokenizer(["Good night. " * 600], text_target=["Gute Nacht."])
    assert hash_of(tokenizer) == before == hash_of(other)


def test_a_model_of_the_package_is_found_by_its_name_without_the_hub(library, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("asks the hub"))
    tokenizer = library.AutoTokenizer.from_pretrained("tatoeba-en-de")
    assert len(tokenizer(["Good night."])["input_ids"][0]) > 1
    for auto in (library.AutoModelForSeq2SeqLM, library.AutoModel):
        assert auto.from_pretrained("tatoeba-en-de").config.architecture.startswith("hybonet")
    assert library.AutoConfig.from_pretrained("tatoeba-en-de").model_type == "hyptrans"
