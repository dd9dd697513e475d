import shutil

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary

import hyptrans
from hyptrans.data.moses import TextSteps
from hyptrans.fairseq import checkpoint
from hyptrans.geometry import lorentz
from hyptrans.support.errors import UserError
from tests.inference.conftest import ARCHS, load
from tests.probing.helpers.model import prepared_folder, without_dropout


@pytest.fixture
def model(make):
    return load(make("hybonet"))


@pytest.mark.parametrize("arch", ARCHS)
def test_scores_match_the_search_and_a_loop_over_tokens(arch, make, texts):
    path = make(arch)
    model = load(path)
    sources = [text for text in texts if text][:3]
    best = [found[0] for found in model.n_best(sources, 1, beam=3)]
    for found in best:
        length = len(found.subwords) + 1
        assert found.score == pytest.approx(found.log_probability / length, rel=1e-5)
    # fairseq's own model, a token at a time, with its own dictionary, which both sides share
    (own,), _ = checkpoint_utils.load_model_ensemble([str(path)])
    words: Dictionary = own.encoder.dictionary
    own.eval().requires_grad_(False)

    def log_probability(source, target):
        tokens, wanted = ([*map(words.index, row)] for row in (source, target))
        total, source = 0.0, torch.tensor([tokens])
        for i, token in enumerate(wanted):
            previous = torch.tensor([[words.eos(), *wanted[:i]]])
            out = own(source, torch.tensor([source.size(1)]), previous)
            total += float(own.get_normalized_probs(out, log_probs=True)[0, -1, token])
        return pytest.approx(total, rel=2e-4)

    rows, targets = (
        [one.subwords for one in model.encode(each)] for each in (sources, sources[::-1])
    )
    for row, found in zip(rows, best, strict=True):
        assert found.log_probability == log_probability(row, (*found.subwords, "</s>"))
    assert model.score(sources, sources[::-1]) == [*map(log_probability, rows, targets)]


def test_results_keep_the_order_of_sentences_for_any_batch_size(model, texts):
    whole = model.translate(texts)
    assert whole == [model.translate([text])[0] for text in texts]
    assert whole == model.translate(texts, batch_tokens=1)
    assert whole[::-1] == model.translate(texts[::-1], batch_tokens=40)
    assert whole[texts.index("")] == ""


def test_n_best_starts_with_the_translation_and_scores_fall(model, texts):
    found = model.n_best(texts, 4, beam=4)
    assert [hypotheses[0].text for hypotheses in found] == model.translate(texts, beam=4)
    for text, hypotheses in zip(texts, found, strict=True):
        assert len(hypotheses) == (4 if text else 1)
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("arch", ARCHS)
def test_states_match_the_encoders_and_name_their_spaces(arch, make, texts):
    path = make(arch)
    model = load(path)
    found = model.encode(texts)
    (own,), _ = checkpoint_utils.load_model_ensemble([str(path)])
    own = without_dropout(own)
    words = own.encoder.dictionary
    for one in (found[0], found[texts.index("")]):
        tokens = torch.tensor([[words.index(subword) for subword in one.subwords]])
        out = own.encoder(tokens, torch.tensor([tokens.size(1)]), return_all_hiddens=True)
        assert one.states.shape == (3, len(one.subwords), 16)
        torch.testing.assert_close(
            one.states[-1], out["encoder_out"][0][:, 0], atol=2e-5, rtol=2e-5
        )
        first = out["encoder_states"][0][:, 0]
        torch.testing.assert_close(one.states[0], first, atol=2e-5, rtol=2e-5)
    for space, states in zip(found[0].spaces, found[0].states, strict=True):
        if space.kind == "lorentz":
            assert lorentz.violation(states, c=space.c).max() < 1e-5
    assert found[0].spaces == model.spaces


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.translate(b"a"), TypeError, "text or a list of sentences is needed, got b"),
        (lambda m: m.translate(["a", 3]), TypeError, "sentence 1 must be text, got int"),
        (lambda m: m.translate(["a", "\ud800"]), UserError, r"sentence 1 has half of a character"),
        (lambda m: m.n_best(["a"], 6, beam=5), UserError, "n=6 translations need a beam"),
        (lambda m: m.score(["a"], []), UserError, "1 sources cannot have 0 targets"),
        (lambda m: m.score("a", ["a"]), TypeError, "one source has one target"),
        (lambda m: m.translate(["dog " * 5000]), UserError, r"source sentence 0 .* model takes 64"),
        (lambda m: m.score(["a"], ["dog " * 5000]), UserError, "^target sentence 0 has "),
        (lambda m: m.to("tpu9"), UserError, "device tpu9 cannot be used"),
        (lambda m: m.to("meta"), UserError, "device meta cannot be used"),
        (lambda m: m.to(None), TypeError, "a device is a name such as cuda, got NoneType"),
    ],
)
def test_bad_input_gives_a_one_sentence_error(model, call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(model)
    assert "\n" not in str(caught.value)
    # and nothing is broken by it
    assert len(model.translate(["a dog"])) == 1


def test_translator_accepts_any_text(model):
    strange = ["\x00\x07", " ", "\u2028", "\u4f60\u597d \U0001f600", "<pad> </s> <unk>", "a\nb"]
    found = model.translate([*strange, " " * 3000])
    assert len(found) == len(strange) + 1
    assert found[1] == found[-1] == ""
    assert model.too_long([" " * 3000, "dog " * 5000]).keys() == {1}


def test_error_for_a_checkpoint_without_its_data_says_so(make, tmp_path):
    with pytest.raises(UserError, match="nowhere is not there; name it with --data"):
        hyptrans.load(make("hybonet"), data="nowhere")


def test_translator_prepares_text_by_language_in_either_direction(make_of, tmp_path):
    steps = ("tokenize", "lowercase")
    folder = prepared_folder(tmp_path / "data", steps=steps, raw=False)
    english, german = TextSteps("en", tokenize=True, lowercase=True), TextSteps("de")
    for direction, expected in (
        (["-s", "en", "-t", "de"], (english, german)),
        (["-s", "de", "-t", "en"], (german, english)),
    ):
        made = make_of(folder, "transformer", *direction)
        assert checkpoint.read(made).text.steps == expected
        pieces = hyptrans.load(made, data=folder).encode("Dog").subwords
        assert ("D" in "".join(pieces)) == (expected[0] == german)


@pytest.mark.parametrize(
    "named", [{"foo": None}, {"sentencepiece": None}, {"none": "a.model"}, {"none": None, 3: None}]
)
def test_invalid_subword_arguments_are_refused(named, make, prepared, tmp_path):
    # dictionaries alone, as fairseq-preprocess leaves them
    bare = shutil.copytree(prepared / "data-bin", tmp_path / "bare")
    with pytest.raises(UserError, match="one kind of subwords is needed, subword-nmt or sentencep"):
        hyptrans.load(make("hybonet"), data=bare, subword_models=named)
    with pytest.raises(UserError, match=r"nowhere\.model is not a sentencepiece model"):
        hyptrans.load(make("hybonet"), data=bare, subword_models={"sentencepiece": "nowhere.model"})
