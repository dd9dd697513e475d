"""Encoders of Hugging Face's format, against that library itself."""

import json
from unittest import mock

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from hyptrans.support.errors import UserError
from probing.states import extract as extraction
from probing.states.huggingface import folder_of, from_hugging_face, library
from probing.text.pieces import align, surface
from probing.text.trees import read_conllu
from tests.probing.helpers import huggingface as helper
from tests.probing.helpers.model import sentences
from tests.probing.helpers.trees import conllu

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
both = pytest.mark.parametrize("random", [False, True])


def write_conllu(path, lines):
    """Words between spaces, all under the first."""
    path.write_text(conllu(lines), encoding="utf-8")
    return path


@pytest.fixture
def bert(tmp_path):
    """The folder of a small model."""
    helper.save(tmp_path / "m")
    return tmp_path / "m"


def change(file, **settings):
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def rename(folder, old, new):
    weights = load_file(folder / "model.safetensors")
    changed = {key.replace(old, new): value for key, value in weights.items()}
    save_file(changed, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "t5"])
def test_states_are_means_of_the_librarys_subword_states(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "BATCH_TOKENS", 64)
    model, tokenizer = helper.save(tmp_path / "m", kind)
    if kind == "gpt2":
        # padding needs no row of the model's embeddings
        tokenizer.add_special_tokens({"pad_token": "<pad>"})
        tokenizer.save_pretrained(tmp_path / "m")
    lines = [*sentences(23, seed=5), "Z\u00fcrich \u20ac \u4e94"]
    trees = write_conllu(tmp_path / "t.conllu", lines)
    parsed, encoder = read_conllu(trees), from_hugging_face(tmp_path / "m")
    got = extraction.extract(encoder, parsed, tmp_path / "s.npy", trees=trees)
    assert (got.layers, got.width, got.architecture) == (3, 16, kind)
    assert {space.kind for space in got.spaces} == {"euclidean"}
    assert got.kept == list(range(24))
    body = model.encoder if kind == "t5" else model
    for i, sentence in enumerate(parsed):
        text, start = " ".join(sentence.words), 0
        found = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
        with torch.no_grad():
            out = body(found["input_ids"], output_hidden_states=True)
        states = torch.stack(out.hidden_states)[:, 0]
        for word, form in enumerate(sentence.words):
            end, spans = start + len(form), enumerate(found["offset_mapping"][0].tolist())
            own = [t for t, (a, b) in spans if a < b and max(a, start) < min(b, end)]
            torch.testing.assert_close(got.sentence(i)[:, word], states[:, own].mean(1), **CLOSE)
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


def test_fresh_parameters_leave_torchs_random_state_alone(bert):
    tokens, lengths = torch.tensor([[2, 9, 11, 3]]), torch.tensor([4])
    state = torch.get_rng_state()
    found = [from_hugging_face(bert, random=True, seed=s) for s in (3, 3, 4)]
    assert torch.equal(torch.get_rng_state(), state)
    found.append(from_hugging_face(bert))
    one, again, other, trained = (encoder.states(tokens, lengths) for encoder in found)
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)
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


def lacks_a_layer(folder):
    rename(folder, "layer.1.attention", "layer.7.attention")


def has_only_a_pickle(folder):
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def is_empty(folder):
    for file in folder.iterdir():
        file.unlink()


def damaged(file, **settings):
    return lambda folder: change(folder / file, **settings)


NO_VOCABULARY = {"type": "Unigram", "unk_id": 9, "vocab": []}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (is_empty, r"cannot be used \("),
        (lacks_a_layer, r"lacks parameters of its own architecture \(encoder.layer.1"),
        (has_only_a_pickle, r"model\.safetensors"),
        (damaged("config.json", num_attention_heads=0), r"cannot be used \(.*zero"),
        (damaged("config.json", hidden_act="nope"), r"cannot be used \(KeyError: .nope"),
        (damaged("tokenizer_config.json", model_max_length="512"), r"cannot be used \(TypeError"),
        (damaged("tokenizer.json", model=NO_VOCABULARY), r"cannot be used \(.*Vocab"),
    ],
)
def test_unusable_models_give_one_sentence_errors(bert, damage, reason):
    damage(bert)
    with pytest.raises(UserError, match=f"--hf .*m:? .*{reason}") as caught:
        from_hugging_face(bert)
    assert "\n" not in str(caught.value)


@both
def test_remote_code_of_a_model_never_runs(bert, monkeypatch, random):
    # the library asks on the terminal where nobody has said yes or no
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    (bert / "evil.py").write_text(f"open({str(bert / 'ran')!r}, 'w')\n")
    names = {"AutoConfig": "evil.C", "AutoModel": "evil.M"}
    change(bert / "config.json", auto_map=names, model_type="evil")
    with pytest.raises(UserError, match=r"--hf .*m cannot be used \(.*custom code"):
        from_hugging_face(bert, random=random)
    assert not (bert / "ran").exists()


@both
def test_a_configuration_larger_than_its_parameters_is_refused(bert, random):
    # a handful of such layers is too much
    size = {"num_hidden_layers": 10**9, "hidden_size": 512, "intermediate_size": 2048}
    change(bert / "config.json", **size)
    with pytest.raises(UserError, match=r"--hf .*m cannot be used: its config.json asks for more"):
        from_hugging_face(bert, random=random)


def test_pooler_may_be_missing_and_a_folder_without_parameters_has_a_size_limit(bert):
    rename(bert, "pooler", "classifier")
    assert from_hugging_face(bert).width == 16
    (bert / "model.safetensors").unlink()
    assert from_hugging_face(bert, random=True).width == 16
    change(bert / "config.json", vocab_size=2_000_000)
    with pytest.raises(UserError, match=r"--hf .*m cannot be used: its config.json asks for more"):
        from_hugging_face(bert, random=True)


def test_loading_a_folder_fetches_no_code_or_kernel(bert, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    seen, inner = [], library().AutoModel.from_pretrained

    def load(*args, **kwargs):
        seen.append(constants.HF_HUB_OFFLINE)
        return inner(*args, **kwargs)

    monkeypatch.setattr(library().AutoModel, "from_pretrained", load)
    change(bert / "config.json", _attn_implementation="sdpa")
    for random in (False, True):
        encoder = from_hugging_face(bert, random=random)
        assert encoder.module.config._attn_implementation == "eager"
    assert (seen, constants.HF_HUB_OFFLINE) == ([True], False)


def test_error_reports_a_tokenizer_that_fails_on_a_word(bert):
    change(
        bert / "tokenizer.json", model={"type": "Unigram", "unk_id": None, "vocab": [["a", 0.0]]}
    )
    with pytest.raises(UserError, match=r"its tokenizer fails on 'dog' \(.*unknown token"):
        from_hugging_face(bert).tokenize("dog")


def test_error_reports_subwords_without_an_embedding_row(bert):
    model = json.loads((bert / "tokenizer.json").read_text())["model"]
    model["vocab"]["dog"] = 60
    change(bert / "tokenizer.json", model=model)
    encoder = from_hugging_face(bert)
    tokens = torch.tensor([[token for token, _ in encoder.tokenize("dog")]])
    with pytest.raises(UserError, match=r"m gives no states of layers for text \(IndexError"):
        encoder.states(tokens, torch.tensor([tokens.size(1)]))


def test_running_out_of_memory_is_not_reported_as_a_wrong_model(bert, monkeypatch):
    full = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")
    monkeypatch.setattr("transformers.AutoModel.from_config", mock.Mock(side_effect=full))
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        from_hugging_face(bert, random=True)
