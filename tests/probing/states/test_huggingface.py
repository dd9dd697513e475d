"""Encoders of Hugging Face's format, against that library itself."""

import json

import pytest
import torch

from hyptrans.support.errors import UserError
from probing.states.extract import extract
from probing.states.huggingface import folder_of, from_hugging_face, library
from probing.text.pieces import align, surface
from probing.text.trees import read_conllu
from tests.probing.helpers import huggingface as helper
from tests.probing.helpers.model import sentences
from tests.probing.helpers.trees import conllu

STRANGE = "Z\u00fcrich \u20ac \u4e94"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def write_conllu(path, lines):
    """Words between spaces, all under the first."""
    path.write_text(conllu(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=["bert", "roberta", "gpt2", "t5"])
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "mine"
    return folder, request.param, *helper.save(folder, request.param)


def states_of(model, tokenizer, text, kind):
    """All layers of one sentence, without padding, and the characters of its tokens."""
    found = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    spans = found["offset_mapping"][0].tolist()
    body = model.encoder if kind == "t5" else model
    with torch.no_grad():
        out = body(found["input_ids"], output_hidden_states=True)
    return torch.stack(out.hidden_states)[:, 0], spans


def test_states_are_means_of_the_librarys_subword_states(made, tmp_path):
    folder, kind, model, tokenizer = made
    trees = write_conllu(
        tmp_path / "t.conllu", [*sentences(23, seed=5), "Z\u00fcrich \u20ac \u4e94"]
    )
    parsed = read_conllu(trees)
    encoder = from_hugging_face(folder)
    got = extract(encoder, parsed, tmp_path / "s.npy", trees=trees, batch_tokens=64)
    assert (got.layers, got.width, got.architecture) == (3, 16, kind)
    assert {space.kind for space in got.spaces} == {"euclidean"}
    assert got.kept == list(range(24))
    for i, sentence in enumerate(parsed):
        text = " ".join(sentence.words)
        assert text == surface(sentence)[0]
        states, spans = states_of(model, tokenizer, text, kind)
        start = 0
        for word, form in enumerate(sentence.words):
            end = start + len(form)
            own = [t for t, (a, b) in enumerate(spans) if a < b and max(a, start) < min(b, end)]
            want = states[:, own].mean(1)
            torch.testing.assert_close(got.sentence(i)[:, word], want, **CLOSE)
            start = end + 1


def test_a_prepended_space_belongs_to_no_word(tmp_path):
    helper.save(tmp_path / "m", "t5")
    tokenizer = helper.unigram(["\u2581", "(", "a", "\u2581b", "c"])
    tokenizer.save_pretrained(tmp_path / "m")
    encoder = from_hugging_face(tmp_path / "m")
    # a text may have the sign itself, too
    for line, wanted in (
        ("(a bc (", [["(", "a"], ["\u2581b", "c"], ["("]]),
        ("\u2581 bc", [["\u2581"], ["\u2581b", "c"]]),
    ):
        (tree,) = read_conllu(write_conllu(tmp_path / "t.conllu", [line]))
        text, spans = surface(tree)
        numbers, pieces = zip(*encoder.tokenize(text), strict=True)
        names = tokenizer.convert_ids_to_tokens(numbers)
        assert [[names[i] for i in own] for own in align(pieces, spans)] == wanted


def test_fresh_parameters_leave_torchs_random_state_alone(tmp_path):
    helper.save(tmp_path / "m")
    tokens, lengths = torch.tensor([[2, 9, 11, 3]]), torch.tensor([4])
    torch.manual_seed(0)
    state = torch.get_rng_state()
    found = [from_hugging_face(tmp_path / "m", random=True, seed=s) for s in (3, 3, 4)]
    assert torch.equal(torch.get_rng_state(), state)
    one, again, other = (encoder.states(tokens, lengths) for encoder in found)
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)
    trained = from_hugging_face(tmp_path / "m").states(tokens, lengths)
    assert not torch.allclose(one, trained)


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_a_sentence_may_fill_but_not_exceed_the_position_table(tmp_path, kind):
    helper.save(tmp_path / "m", kind, positions=12)
    encoder = from_hugging_face(tmp_path / "m")
    assert encoder.max_tokens == 12
    assert torch.isfinite(encoder.states(torch.full((1, 12), 7), torch.tensor([12]))).all()
    with pytest.raises(UserError, match="gives no states"):
        encoder.states(torch.full((1, 13), 7), torch.tensor([13]))


def test_a_model_name_resolves_from_the_cache(tmp_path, monkeypatch):
    from huggingface_hub import constants

    place = tmp_path / "models--someone--small"
    helper.save(place / "snapshots" / ("5" * 40))
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("5" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    folder = folder_of("someone/small")
    assert folder == place / "snapshots" / ("5" * 40)
    assert from_hugging_face(folder).identity == "5" * 40
    with pytest.raises(UserError, match=r"--hf someone/other is neither a folder nor a model"):
        folder_of("someone/other")


def rename(folder, old, new):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    changed = {key.replace(old, new): value for key, value in weights.items()}
    save_file(changed, folder / "model.safetensors", {"format": "pt"})


def test_unusable_models_give_one_sentence_errors(tmp_path):
    def error(folder):
        with pytest.raises(UserError) as caught:
            from_hugging_face(folder)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    (tmp_path / "empty").mkdir()
    assert "empty cannot be used (" in error(tmp_path / "empty")
    with pytest.raises(UserError, match="none is neither a folder nor a model that can"):
        folder_of(str(tmp_path / "none"))
    helper.save(tmp_path / "m")
    rename(tmp_path / "m", "layer.1.attention", "layer.7.attention")
    assert "lacks parameters of its own architecture (encoder.layer.1" in error(tmp_path / "m")
    # no pickle is read
    helper.save(tmp_path / "p")
    torch.save({}, tmp_path / "p" / "pytorch_model.bin")
    (tmp_path / "p" / "model.safetensors").unlink()
    assert "model.safetensors" in error(tmp_path / "p")


@pytest.mark.parametrize("random", [False, True])
def test_remote_code_of_a_model_never_runs(tmp_path, monkeypatch, random):
    # the library asks on the terminal where nobody has said yes or no
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    helper.save(tmp_path / "m")
    (tmp_path / "m" / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    names = {"AutoConfig": "evil.C", "AutoModel": "evil.M"}
    config |= {"auto_map": names, "model_type": "evil"}
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"--hf .*m cannot be used \(.*custom code"):
        from_hugging_face(tmp_path / "m", random=random)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("random", [False, True])
def test_a_configuration_larger_than_its_parameters_is_refused(tmp_path, random):
    helper.save(tmp_path / "m")
    # a handful of such layers is too much
    size = {"num_hidden_layers": 10**9, "hidden_size": 512, "intermediate_size": 2048}
    change(tmp_path / "m" / "config.json", **size)
    with pytest.raises(UserError, match=r"--hf .*m cannot be used: its config.json asks for more"):
        from_hugging_face(tmp_path / "m", random=random)


def change(file, **settings):
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def test_a_folder_without_parameters_has_a_size_limit(tmp_path):
    helper.save(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    assert from_hugging_face(tmp_path / "m", random=True).width == 16
    change(tmp_path / "m" / "config.json", vocab_size=2_000_000)
    with pytest.raises(UserError, match=r"--hf .*m cannot be used: its config.json asks for more"):
        from_hugging_face(tmp_path / "m", random=True)


@pytest.mark.parametrize("random", [False, True])
def test_encoder_ignores_the_configured_attention_backend(tmp_path, random):
    helper.save(tmp_path / "m")
    change(tmp_path / "m" / "config.json", _attn_implementation="sdpa")
    encoder = from_hugging_face(tmp_path / "m", random=random)
    assert encoder.module.config._attn_implementation == "eager"


def test_loading_a_folder_fetches_nothing(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    seen, inner = [], library().AutoModel.from_pretrained

    def load(*args, **kwargs):
        seen.append(constants.HF_HUB_OFFLINE)
        return inner(*args, **kwargs)

    monkeypatch.setattr(library().AutoModel, "from_pretrained", load)
    helper.save(tmp_path / "m")
    from_hugging_face(tmp_path / "m")
    assert (seen, constants.HF_HUB_OFFLINE) == ([True], False)


@pytest.mark.parametrize(
    ("file", "settings", "problem"),
    [
        ("config.json", {"num_attention_heads": 0}, "zero"),
        ("config.json", {"hidden_act": "nope"}, "KeyError: .nope"),
        ("tokenizer_config.json", {"model_max_length": "512"}, "TypeError"),
        ("tokenizer.json", {"model": {"type": "Unigram", "unk_id": 9, "vocab": []}}, "Vocab"),
    ],
)
def test_error_for_damaged_files_gives_the_librarys_reason(tmp_path, file, settings, problem):
    helper.save(tmp_path / "m")
    change(tmp_path / "m" / file, **settings)
    with pytest.raises(UserError, match=rf"--hf .*m cannot be used \(.*{problem}"):
        from_hugging_face(tmp_path / "m")


def test_error_reports_a_tokenizer_that_fails_on_a_word(tmp_path):
    helper.save(tmp_path / "m")
    model = {"type": "Unigram", "unk_id": None, "vocab": [["a", 0.0]]}
    change(tmp_path / "m" / "tokenizer.json", model=model)
    encoder = from_hugging_face(tmp_path / "m")
    with pytest.raises(UserError, match=r"its tokenizer fails on 'dog' \(.*unknown token"):
        encoder.tokenize("dog")


@pytest.mark.parametrize("number", [60, 10**9, 2**32 - 1])
def test_error_reports_subwords_without_an_embedding_row(tmp_path, number):
    helper.save(tmp_path / "m")
    file = tmp_path / "m" / "tokenizer.json"
    model = json.loads(file.read_text())["model"]
    model["vocab"]["dog"] = number
    change(file, model=model)
    encoder = from_hugging_face(tmp_path / "m")
    with pytest.raises(UserError, match=f"has 'dog' as number {number}, its model has no more"):
        encoder.tokenize("dog")


def test_padding_needs_no_row_of_its_own(tmp_path):
    _, tokenizer = helper.save(tmp_path / "m", "gpt2")
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(tmp_path / "m")
    encoder = from_hugging_face(tmp_path / "m")
    trees = write_conllu(tmp_path / "t.conllu", ["a", "the dog sees a cat"])
    assert extract(encoder, read_conllu(trees), tmp_path / "s.npy", trees=trees).kept == [0, 1]


def test_running_out_of_memory_is_not_reported_as_a_wrong_model(tmp_path, monkeypatch):
    helper.save(tmp_path / "m")

    def full(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")

    monkeypatch.setattr("transformers.AutoModel.from_config", full)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        from_hugging_face(tmp_path / "m", random=True)


def test_pooler_may_be_missing(tmp_path):
    helper.save(tmp_path / "m")
    rename(tmp_path / "m", "pooler", "classifier")
    assert from_hugging_face(tmp_path / "m").width == 16
