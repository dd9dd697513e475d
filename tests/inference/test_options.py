"""Each option that one may give from Python is obeyed, or refused in a sentence."""

import math
from collections import Counter

import pytest
import torch

import hyptrans
from hyptrans.support.errors import UserError
from tests.inference.conftest import export, load


@pytest.fixture(scope="module")
def model():
    """One that translates, so that options have something to change."""
    return hyptrans.load("tatoeba-en-de")


TEXTS = ["Where is the station?", "", "I would like a cup of tea.", "Good night."]


def test_a_text_gives_one_translation_and_an_iterable_a_list(model):
    (listed,) = model.translate([TEXTS[0]])
    assert model.translate(TEXTS[0]) == listed
    assert model.translate(text for text in TEXTS) == model.translate(tuple(TEXTS))
    assert model.n_best(TEXTS[0], 2) == model.n_best([TEXTS[0]], 2)[0]
    assert model.score(TEXTS[0], listed) == model.score([TEXTS[0]], [listed])[0]
    assert model.encode(TEXTS[0]).subwords == model.encode(iter([TEXTS[0]]))[0].subwords


def test_log_probabilities_of_subwords_sum_to_the_sentences(model):
    for row in model.n_best(TEXTS, 3):
        for one in row:
            assert len(one.log_probabilities) == (len(one.subwords) + 1 if one.text else 0)
            assert math.fsum(one.log_probabilities) == pytest.approx(one.log_probability, abs=1e-4)
    aligned = model.align(TEXTS, model.translate(TEXTS))
    sums = [math.fsum(one.log_probabilities) for one in aligned]
    assert sums == model.score(TEXTS, model.translate(TEXTS))


def test_length_penalty_has_two_names(model):
    found = model.n_best(TEXTS, 5, length_penalty=0.0)
    assert found == model.n_best(TEXTS, 5, lenpen=0)
    for one in found[0]:
        assert one.score == pytest.approx(one.log_probability)


def test_max_length_limits_every_translation(model):
    lengths = [len(row[0].subwords) for row in model.n_best(TEXTS, 1, max_length=4)]
    assert (max(lengths), lengths[1]) == (4, 0)


def test_translation_starts_with_its_prefix_and_scores_it_too(model):
    prefixes = ["Sag mir, wo", "", "", "Bis morgen und gute"]
    found = model.n_best(TEXTS, 3, prefix=prefixes)
    for row, prefix in zip(found, prefixes, strict=True):
        assert all(one.text.startswith(prefix) for one in row)
    scores = model.score(TEXTS, [row[0].text for row in found])
    for row, score, text in zip(found, scores, TEXTS, strict=True):
        assert not text or row[0].log_probability == pytest.approx(score, abs=1e-3)
    # the others are what they are without it
    assert found[2] == model.n_best(TEXTS[2], 3)
    same = model.translate(TEXTS, prefix="Ich")
    assert [text.startswith("Ich") for text in same] == [True, False, True, True]
    assert same == model.translate(TEXTS, prefix=["Ich"] * 4, batch_tokens=1)


def test_translation_keeps_unknown_words_of_a_prefix(model):
    # the dictionary has no Chinese
    found = model.n_best(TEXTS[0], 2, prefix="\u5317\u4eac ist")
    assert all(one.text.startswith("\u5317\u4eac ist") for one in found)
    assert all("<unk>" not in one.subwords for one in found)
    assert all(len(one.subwords) + 1 == len(one.log_probabilities) for one in found)


def test_torchs_default_dtype_changes_nothing(model):
    wanted = model.n_best(TEXTS, 2), model.score(TEXTS, TEXTS[::-1])
    for dtype in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            loaded = hyptrans.load("tatoeba-en-de")
            found = [
                (one.n_best(TEXTS, 2), one.score(TEXTS, TEXTS[::-1])) for one in (model, loaded)
            ]
            states = loaded.encode(TEXTS[0]).states
        finally:
            torch.set_default_dtype(torch.float32)
        assert found == [wanted, wanted]
        assert states.dtype == torch.float32


def test_samples_follow_the_seed_and_the_softmax(model):
    drawn = {"sampling": True, "max_length": 1, "temperature": 1.5}
    few = model.n_best(TEXTS[0], 1000, seed=1, **drawn)
    assert few == model.n_best(TEXTS[0], 1000, seed=1, **drawn)
    assert few != model.n_best(TEXTS[0], 1000, seed=2, **drawn)
    many = model.n_best(TEXTS[0], 2000, seed=1, **drawn)
    counts = Counter(one.subwords[0] for one in many)
    core, words = model.model, model._target.words
    source = model._source.rows(TEXTS[0])
    with torch.no_grad():
        logits = core(torch.tensor(source), torch.tensor([[words.eos()]]))[0, 0] / 1.5
    # neither padding nor the end comes first
    logits[[words.pad(), words.eos()]] = -torch.inf
    for token in logits.topk(20).indices.tolist():
        share = float(logits.softmax(-1)[token])
        error = 5 * math.sqrt(share * (1 - share) / 2000)
        assert counts[words[token]] / 2000 == pytest.approx(share, abs=error)
    two = model.n_best(TEXTS[0], 1000, seed=1, sampling_topk=2, **drawn)
    allowed = {words[token] for token in logits.topk(2).indices.tolist()}
    assert {one.subwords[0] for one in two} == allowed


def test_samples_differ_between_equal_sentences_and_unseeded_calls(model):
    first, second = model.translate([TEXTS[2]] * 2, sampling=True, seed=1, batch_tokens=1)
    assert first != second
    # two samples may be equal by chance
    assert len({model.translate(TEXTS[2], sampling=True) for _ in range(20)}) > 1


def test_ensemble_averages_probabilities(make, texts, tmp_path):
    places = [export(make("hybonet"), tmp_path / "one"), make("transformer")]
    both, parts = hyptrans.load(places), [load(place) for place in places]
    targets = texts[::-1]
    each = [[one.log_probabilities for one in model.align(texts, targets)] for model in parts]
    wanted = [
        sum(math.log((math.exp(p) + math.exp(q)) / 2) for p, q in zip(*pair, strict=True))
        for pair in zip(*each, strict=True)
    ]
    assert both.score(texts, targets) == pytest.approx(wanted, rel=1e-6)
    # a search, too: token by token, of the subwords that it found
    (one,), words = both.n_best(texts[:1], 1), both._target.words
    tokens = torch.tensor([[*map(words.index, one[0].subwords), words.eos()]])
    source = torch.tensor(both._source.rows(texts[:1]))
    with torch.no_grad():
        found = sum(model.model(source, tokens.roll(1)).softmax(-1) for model in parts) / 2
    found = found.gather(-1, tokens[..., None]).log().flatten().tolist()
    assert one[0].log_probabilities == pytest.approx(found, rel=1e-4)
    weights = [model.align(texts[0], targets[0]).weights for model in (both, *parts)]
    torch.testing.assert_close(weights[0], (weights[1] + weights[2]) / 2)
    with pytest.raises(UserError, match="an ensemble has no states of its own"):
        both.encode(texts)


def test_ensemble_refuses_models_with_different_text_processing(make):
    with pytest.raises(UserError, match="cannot form an ensemble: their languages differ"):
        hyptrans.load(["tatoeba-en-de", make("hybonet", "-s", "de", "-t", "en")])
    with pytest.raises(UserError, match="cannot form an ensemble: their dictionaries differ"):
        hyptrans.load([make("hybonet"), "tatoeba-en-de"])


def test_attention_weights_match_fairseq(make, texts):
    from fairseq import checkpoint_utils

    path = make("transformer")
    aligned = load(path).align(texts, texts[::-1])
    (own,), _ = checkpoint_utils.load_model_ensemble([str(path)])
    own.eval()
    index = own.decoder.dictionary.index
    for one in aligned:
        source, target = (torch.tensor([[*map(index, row)]]) for row in (one.source, one.target))
        with torch.no_grad():
            _, more = own(source, torch.tensor([source.size(1)]), target.roll(1))
        torch.testing.assert_close(one.weights, more["attn"][0][0], atol=1e-5, rtol=1e-4)


def test_align_matches_words_with_their_translations(model):
    one = model.align("The green house has two doors.", "Das grüne Haus hat zwei Türen.")
    torch.testing.assert_close(one.weights.sum(1), torch.ones(len(one.target)))
    pairs = {(one.source[i].strip("\u2581"), one.target[j].strip("\u2581")) for i, j in one.pairs}
    assert ("green", "grüne") in pairs or ("two", "zwei") in pairs
    assert len(one.pairs) == len(one.target) - 1
    assert model.align("", "ein").pairs == []


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"num_beams": 5}, TypeError, "unknown option num_beams; options are batch_tokens"),
        ({"beam": 2.5}, TypeError, "beam must be a whole number, got float"),
        ({"beam": True}, TypeError, "beam must be a whole number, got bool"),
        ({"lenpen": "1"}, TypeError, "lenpen must be a number, got str"),
        ({"lenpen": 1, "length_penalty": 1}, UserError, "are the same: leave one out"),
        ({"beam": 3, "sampling": True}, UserError, "sampling uses no beam"),
        ({"seed": 1}, UserError, "seed is for samples: set sampling=True"),
        ({"sampling_topk": 3}, UserError, "sampling_topk is for samples"),
        ({"sampling": 5}, TypeError, "sampling must be True or False, got int"),
        ({"sampling": True, "seed": 1.5}, TypeError, "float"),
        ({"beam": 10**20}, UserError, "beam must be at most 2,147,483,647, got 1000"),
        ({"sampling": True, "sampling_topk": 10**30}, UserError, "sampling_topk must be at most"),
        ({"max_length": 10**6}, UserError, "max_length must be at most 1,023"),
        ({"prefix": ["a", "b"]}, UserError, "1 sources cannot have 2 prefixes"),
        ({"prefix": "a b c", "max_length": 2}, UserError, "prefix of sentence 0 has 3 subwords"),
        ({"prefix": 3}, TypeError, "text or a list of sentences is needed, got int"),
        ({"length_penalty": 11}, UserError, "length_penalty must be from -10 to 10"),
    ],
)
def test_impossible_options_give_one_sentence_errors(model, asked, error, message):
    with pytest.raises(error, match=message) as caught:
        model.translate(["a"], **asked)
    assert "\n" not in str(caught.value)
