"""Loading checks a model folder against its parameters and trusts nothing in it."""

import json
import math
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import hyptrans
from hyptrans.fairseq import checkpoint
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from tests.inference.conftest import export, load
from tests.probing.helpers.model import exchange_words


def change(path, more=(), /, **values):
    """Change options and entries of a folder's configuration; an entry without a value goes."""
    config = json.loads((path / folder.CONFIG).read_text())
    config["options"] |= more
    config = {name: one for name, one in {**config, **values}.items() if one is not None}
    (path / folder.CONFIG).write_text(json.dumps(config))


def change_parameters(path, change):
    weights = load_file(path / folder.WEIGHTS)
    change(weights)
    save_file(weights, path / folder.WEIGHTS)


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "dict.en.txt", "sentencepiece.model"]
)
@pytest.mark.parametrize("content", [None, b"\x80\x04K\x01.", b"{" * 100_000, b"[]", b"word\n"])
def test_error_names_a_missing_or_damaged_file(written, name, content):
    (written / name).unlink()
    if content is not None:
        (written / name).write_bytes(content)
    with pytest.raises(UserError, match=name.replace(".", r"\.")) as caught:
        load(written)
    assert "\n" not in str(caught.value)


HOSTILE = {
    "text instead of a number": {"encoder_layers": "__import__('os').mkdir('owned')"},
    "an option that fairseq evaluates": {"adaptive_softmax_cutoff": "[1]"},
    "layers that are not there": {"encoder_layers": 10_000_000},
    "an absurd width": {"encoder_embed_dim": 1 << 40},
    "a width below zero": {"encoder_ffn_embed_dim": -4},
    "not a number": {"dropout": math.nan},
    "more is dropped than there is": {"activation_dropout": 7.0},
    "a list": {"encoder_layers": [2]},
    "a switch that is a number": {"share_all_embeddings": 1},
    "an unknown choice": {"embedding_storage": "cloud"},
    "heads that do not divide": {"encoder_attention_heads": 3},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_options_that_contradict_the_parameters_are_refused(case, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change(written, HOSTILE[case])
    with pytest.raises(UserError, match="model") as caught:
        load(written)
    # by its name of Python, or with the parameter that it does not fit
    named = next(iter(HOSTILE[case])).removeprefix("encoder_")
    said = str(caught.value)
    assert any(word in said for word in (named, "divisible", "by its options", "go together"))
    assert "--" not in said
    assert "\n" not in said
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 7, "hyptrans_version": "0.9.0"}, r"by hyptrans 0\.9\.0 in format 7, this ver"),
        ({"architecture": "lstm"}, "no architecture 'lstm'"),
        ({"architecture": ["x"]}, "no architecture"),
        ({"languages": ["../../en", "de"]}, "languages must be two names"),
        ({"options": []}, "options are missing"),
        ({"text": {"subwords": "pickle"}}, "rules for text are damaged"),
        ({"library_name": "other"}, "does not belong to a model folder"),
        (
            {"facts": {"scores": [{"name": "BLEU", "value": "<script>", "signature": ""}]}},
            "its scores is not what",
        ),
        ({"facts": {"updates": "many"}}, "its updates is not what"),
        ({"facts": {"averaged_updates": ["many"]}}, "its averaged_updates is not what"),
    ],
)
def test_a_damaged_configuration_is_refused(written, values, message):
    change(written, **values)
    with pytest.raises(UserError, match=message):
        load(written)


@pytest.mark.parametrize("arch", ["transformer", "han"])
def test_computed_position_tables_have_a_size_limit(arch, make, tmp_path):
    fixed = [] if arch == "transformer" else ["--no-encoder-learned-pos"]
    out = export(make(arch, *fixed), tmp_path / "model")
    change(out, {"max_source_positions": 1 << 14})
    assert load(out).max_tokens == 1 << 14
    change(out, {"max_source_positions": 1 << 21})
    with pytest.raises(UserError, match=r"max_source_positions and .* tables of more than"):
        load(out)


@pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.complex64, torch.uint16, "nan"])
def test_both_front_ends_refuse_numbers_that_no_training_writes(kind, written):
    from transformers import AutoModelForSeq2SeqLM

    import hyptrans.transformers  # noqa: F401 - registers

    name = "encoder.embed_tokens.weight"

    def spoil(weights):
        if kind == "nan":
            weights[name][0, 0] = math.nan
        else:
            weights[name] = torch.ones(weights[name].shape).to(kind)

    change_parameters(written, spoil)
    said = "not finite" if kind == "nan" else f"stored as {str(kind).removeprefix('torch.')}, which"
    for read in (load, AutoModelForSeq2SeqLM.from_pretrained):
        with pytest.raises(UserError, match=f"its {name} .*{said}"):
            read(written)


@pytest.mark.parametrize("raw", [-200.0, 1e9])
def test_a_learned_curvature_out_of_range_is_refused(raw, make, tmp_path):
    out = export(make("hypformer", "--hypformer-learn-curvature"), tmp_path / "model")
    change_parameters(
        out, lambda all_: next(all_[n] for n in all_ if n.endswith(".raw")).fill_(raw)
    )
    with pytest.raises(UserError, match=r"model cannot be used: its \S+ is .* and curvatures are"):
        load(out)


def test_parameters_of_another_model_are_refused(written, make):
    shutil.copy(written / folder.WEIGHTS, written.parent / "kept")
    for change_, said in (
        (lambda all_: all_.update(version=torch.tensor([0, 1, 0])), r"by hyptrans 0\.1\.0"),
        (lambda all_: all_.popitem(), "parameters and options do not go together"),
        (lambda all_: all_.update(more=torch.ones(1)), "more belongs to no part"),
    ):
        change_parameters(written, change_)
        with pytest.raises(UserError, match=f"model cannot be used: .*{said}"):
            load(written)
        shutil.copy(written.parent / "kept", written / folder.WEIGHTS)
    shutil.copy(make("hybonet"), written / folder.WEIGHTS)
    with pytest.raises(UserError, match=r"model\.safetensors is missing, damaged or not a safe"):
        load(written)


def test_another_dictionary_of_the_same_size_is_refused(written):
    exchange_words(written / "dict.en.txt")
    with pytest.raises(UserError, match="model: a dictionary is not the one that the model was"):
        load(written)
    change(written, dictionaries=None)  # as 0.2.0 wrote it
    assert load(written).translate([""]) == [""]


OUTSIDE = "x/../../../outside"
"""A language whose dictionary is beside the folders, where there is a folder ``dict.x``."""


@pytest.mark.parametrize("side", ["source_lang", "target_lang"])
def test_checkpoint_languages_that_are_paths_are_refused(side, make, prepared, tmp_path):
    data = shutil.copytree(prepared, tmp_path / "data")
    (data / "data-bin" / "dict.x").mkdir()
    shutil.copy(data / "data-bin" / "dict.en.txt", tmp_path / "outside.txt")
    path = make("transformer")
    state = torch.load(path, weights_only=True)
    state["cfg"]["task"].update({"source_lang": "en", "target_lang": "de", side: OUTSIDE})
    torch.save(state, path)
    with pytest.raises(UserError, match="cannot be used: its languages must be two names"):
        checkpoint.read(path, data)


@pytest.mark.parametrize(
    "name", ["nowhere", "", "../runs", ".a/b", "checkpoints/best.pt", "here/model"]
)
def test_error_names_a_model_that_does_not_exist(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    said = re.escape(name or "an empty name")
    with pytest.raises(UserError, match=f"{said} is neither a file nor a folder.*nor a repository"):
        hyptrans.load(name)
