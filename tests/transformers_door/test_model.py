import importlib

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from transformers.trainer_pt_utils import LabelSmoother

import hyptrans
from hyptrans.support.errors import UserError
from tests.models.conftest import left_padded, right_padded

TARGETS = ["Gute Nacht.", "Tom hat es gestern Abend gesehen.", "Nein."]
SOURCES = ["Good night.", "Tom saw it yesterday evening.", "No."]
EPSILON = 0.1


def batch(tokenizer):
    return tokenizer(SOURCES, text_target=TARGETS, padding=True, return_tensors="pt")


def labels_of(tokenizer, numbers):
    return numbers.masked_fill(numbers.eq(tokenizer.pad_token_id), -100)


def test_logits_match_the_core_model(model, ours, tokenizer):
    given = batch(tokenizer)
    previous = model.prepare_decoder_input_ids_from_labels(labels_of(tokenizer, given.labels))
    with torch.no_grad():
        found = model(given.input_ids, given.attention_mask, decoder_input_ids=previous)
        wanted = ours.model(given.input_ids, previous)
    assert torch.equal(found.logits, wanted)
    assert found.cache is None


def test_a_mask_says_what_is_padding_and_by_default_the_tokens_do(model, tokenizer):
    given = batch(tokenizer)
    wrong = given.input_ids.masked_fill(given.attention_mask.eq(0), 7)
    ways = ((given.input_ids, given.attention_mask), (wrong, given.attention_mask))
    with torch.no_grad():
        wanted, *found = (
            model(numbers, mask, decoder_input_ids=given.labels).logits
            for numbers, mask in (*ways, (given.input_ids, None))
        )
    assert all(torch.equal(one, wanted) for one in found)


@pytest.mark.parametrize("pieces", [[1, 1, 1, 1], [2, 2], [3, 1]])
def test_cached_decoding_gives_the_logits_of_a_full_pass(model, tokenizer, pieces):
    given = batch(tokenizer)
    source = {"input_ids": given.input_ids, "attention_mask": given.attention_mask}
    tokens, cache, found = given.labels[:, :4], None, []
    with torch.no_grad():
        for new in tokens.split(pieces, dim=1):
            out = model(**source, decoder_input_ids=new, cache=cache, use_cache=True)
            cache = out.cache
            found.append(out.logits)
        wanted = model(**source, decoder_input_ids=tokens).logits
    real = tokens.ne(tokenizer.pad_token_id).cummin(1)[0].bool()
    torch.testing.assert_close(torch.cat(found, 1)[real], wanted[real], rtol=1e-4, atol=1e-4)


# the library's smoothing adds up in float32, whatever the model is in
@pytest.mark.parametrize(("smoothing", "close"), [(0.0, 1e-10), (EPSILON, 1e-7)])
def test_loss_and_gradients_match_the_criterion(library, place, tokenizer, smoothing, close):
    core = hyptrans.load(place, dtype="float64")
    wanted_model, rows = core.model.requires_grad_(), core._target.rows(TARGETS)
    previous = right_padded([[2, *row[:-1]] for row in rows], 1)
    logits = wanted_model(left_padded(core._source.rows(SOURCES), 1), previous)
    target = right_padded(rows, 1).view(-1, 1)
    log_p = logits.log_softmax(-1).flatten(0, 1)
    summed, _ = label_smoothed_nll_loss(log_p, target, smoothing, ignore_index=1)
    wanted = summed / target.ne(1).sum()
    wanted.backward()

    model = library.AutoModelForSeq2SeqLM.from_pretrained(place, dtype=torch.float64)
    given = batch(tokenizer)
    labels = labels_of(tokenizer, given.labels)
    out = model(given.input_ids, given.attention_mask, labels=labels)
    loss = out.loss
    if smoothing:
        # the library spreads over all symbols what fairseq spreads over all others
        symbols = logits.size(-1)
        loss = LabelSmoother(smoothing * symbols / (symbols - 1))(out, labels)
    loss.backward()
    torch.testing.assert_close(loss, wanted, rtol=close, atol=0)
    own = dict(model.named_parameters())
    for name, parameter in wanted_model.named_parameters():
        torch.testing.assert_close(own[name].grad, parameter.grad, rtol=0, atol=close)


def test_loss_with_num_items_divides_the_sum_by_it(model, tokenizer):
    given = batch(tokenizer)
    labels = labels_of(tokenizer, given.labels)
    with torch.no_grad():
        mean, part = (
            model(given.input_ids, labels=labels, num_items_in_batch=items).loss
            for items in (None, 100)
        )
    count = int(labels.ne(-100).sum())
    torch.testing.assert_close(part * 100, mean * count)


def test_loss_of_bfloat16_logits_accumulates_in_float32(library, rng):
    logits, labels = torch.randn(4, 50, 300, generator=rng), torch.randint(300, (4, 50))
    loss = importlib.import_module("hyptrans.transformers.training").loss
    half = logits.bfloat16()
    found = loss(half, labels, None)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, loss(half.float(), labels, None))


@pytest.mark.parametrize("beam", [1, 5])
def test_generate_finds_the_same_translations_as_translate(model, ours, tokenizer, sentences, beam):
    given = tokenizer(sentences, padding=True, return_tensors="pt")
    made = model.generate(**given, num_beams=beam)
    found = tokenizer.batch_decode(made, skip_special_tokens=True)
    assert found == ours.translate(sentences, beam=beam)


def test_model_translates_in_bfloat16(library, place, ours, tokenizer):
    model = library.AutoModelForSeq2SeqLM.from_pretrained(place, dtype=torch.bfloat16)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    made = model.generate(**tokenizer(SOURCES, padding=True, return_tensors="pt"))
    found = tokenizer.batch_decode(made, skip_special_tokens=True)
    assert found == ours.translate(SOURCES)


def test_generate_without_a_cache_gives_the_same_result(model, tokenizer, sentences):
    given = tokenizer(sentences[:6], padding=True, return_tensors="pt")
    found = [model.generate(**given, use_cache=kept).tolist() for kept in (True, False)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("source", "prefix"), [(SOURCES[1], "Gestern"), (SOURCES[0], "Gute Nacht!")]
)
def test_generate_follows_a_prefix_and_may_end_right_after_it(
    model, ours, tokenizer, source, prefix
):
    begun = [2, *ours._target.rows(prefix)[0][:-1]]
    given = tokenizer([source], return_tensors="pt")
    made = model.generate(**given, decoder_input_ids=torch.tensor([begun]))
    found = tokenizer.batch_decode(made, skip_special_tokens=True)[0]
    assert found == ours.translate(source, prefix=prefix)
    assert (found == prefix) == (made.tolist() == [[*begun, 2]])


def test_impossible_arguments_are_refused(model, library, place, tokenizer):
    given = batch(tokenizer)
    with pytest.raises(UserError, match="decoder_input_ids or labels"):
        model(given.input_ids)
    with pytest.raises(UserError, match="input_ids: name them"):
        model(labels=given.labels)
    padded = given.labels.masked_fill(given.labels.eq(given.labels[:, :1]), 1)
    with pytest.raises(UserError, match="padded on the right"):
        model(given.input_ids, decoder_input_ids=padded, use_cache=True)
    with pytest.raises(UserError, match="dtype must be float32, float64 or bfloat16, got float16"):
        library.AutoModelForSeq2SeqLM.from_pretrained(place, dtype="float16")
    with pytest.raises(UserError, match="loaded without device_map: leave it out"):
        library.AutoModelForSeq2SeqLM.from_pretrained(place, device_map="auto")
    with pytest.raises(UserError, match="hyptrans export"):
        library.AutoModelForSeq2SeqLM.from_config(type(model.config)(architecture="hybonet_tiny"))
