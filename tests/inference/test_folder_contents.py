"""What stands in a model folder is held against its parameters, and nothing in it is trusted."""

import dataclasses
import json
import math
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import hyptrans
from hyptrans.fairseq import checkpoint
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from tests.inference.conftest import export, load


def change(path, **values):
    config = json.loads((path / folder.CONFIG).read_text())
    (path / folder.CONFIG).write_text(json.dumps({**config, **values}))


def change_options(path, **values):
    config = json.loads((path / folder.CONFIG).read_text())
    change(path, options={**config["options"], **values})


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "dict.en.txt", "dict.de.txt"])
def test_a_missing_file_is_named(written, name):
    (written / name).unlink()
    with pytest.raises(UserError, match=f"{name} is missing: name a folder that hyptrans export"):
        load(written)


def test_a_missing_subword_model_is_named(written):
    (written / "sentencepiece.model").unlink()
    with pytest.raises(UserError, match=r"sentencepiece\.model is missing"):
        load(written)


def test_a_folder_of_another_format_or_version_is_told_by_name(written):
    change(written, format=7, hyptrans_version="0.9.0")
    with pytest.raises(UserError, match=r"written by hyptrans 0\.9\.0 in format 7, this version"):
        load(written)


def test_parameters_of_another_version_are_refused(written):
    weights = load_file(written / folder.WEIGHTS)
    weights["version"] = torch.tensor([0, 1, 0])
    save_file(weights, written / folder.WEIGHTS)
    with pytest.raises(
        UserError, match=r"model cannot be used: it was written by hyptrans 0\.1\.0"
    ):
        load(written)


HOSTILE = {
    "text instead of a number": {"encoder_layers": "__import__('os').mkdir('owned')"},
    "an option that fairseq evaluates": {"adaptive_softmax_cutoff": "[1]"},
    "layers that are not there": {"encoder_layers": 10_000_000},
    "an absurd width": {"encoder_embed_dim": 1 << 40},
    "absurd positions": {"max_source_positions": 1 << 40},
    "no heads": {"encoder_attention_heads": 0},
    "a width below zero": {"encoder_ffn_embed_dim": -4},
    "not a number": {"dropout": math.nan},
    "more is dropped than there is": {"activation_dropout": 7.0},
    "a list": {"encoder_layers": [2]},
    "a switch that is a number": {"share_all_embeddings": 1},
    "an unknown choice": {"embedding_storage": "cloud"},
    "heads that do not divide": {"encoder_attention_heads": 3},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_options_that_parameters_do_not_bear_out_are_refused(case, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change_options(written, **HOSTILE[case])
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
        ({"architecture": "lstm"}, "no architecture 'lstm'"),
        ({"architecture": ["x"]}, "no architecture"),
        ({"languages": ["../../en", "de"]}, "languages are not two names"),
        ({"languages": ["en"]}, "languages are not two names"),
        ({"options": []}, "options are missing"),
        ({"text": {"subwords": "pickle"}}, "rules for text are damaged"),
        ({"library_name": "other"}, "is not of a model folder"),
    ],
)
def test_a_damaged_configuration_is_refused(written, values, message):
    change(written, **values)
    with pytest.raises(UserError, match=message):
        load(written)


@pytest.mark.parametrize(
    "facts",
    [
        {"scores": 3},
        {"scores": [{"name": "BLEU"}]},
        {"scores": [{"name": "BLEU", "value": "<script>", "signature": ""}]},
        {"updates": "many"},
        {"command": ["rm"]},
        {"averaged_updates": ["many"]},
    ],
)
def test_damaged_facts_are_refused(written, facts):
    change(written, facts=facts)
    with pytest.raises(UserError, match=rf"is damaged: its {next(iter(facts))} is not what"):
        load(written)


def test_a_damaged_dictionary_is_named(written):
    (written / "dict.de.txt").write_text("word\n")
    with pytest.raises(UserError, match=r"dict\.de\.txt is damaged: export the model again"):
        load(written)


@pytest.mark.parametrize(
    "content", [b"\x80\x04K\x01.", b"{" * 100_000, b"[]", b"\xff\xfe", b""], ids=len
)
def test_a_configuration_that_is_no_json_object_is_refused(written, content):
    (written / folder.CONFIG).write_bytes(content)
    with pytest.raises(UserError, match=r"config\.json is damaged: it is no object of JSON"):
        load(written)


@pytest.mark.parametrize("name", [folder.CONFIG, folder.WEIGHTS, "dict.de.txt"])
def test_a_pointer_of_git_lfs_is_named_as_what_it_is(written, name):
    (written / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(UserError, match=f"{name} is a pointer of Git LFS"):
        load(written)


@pytest.mark.parametrize("name", ["decoder_output_dim", "encoder_ffn_embed_dim"])
def test_a_model_far_larger_than_its_parameters_takes_no_memory(name, make, tmp_path):
    out = export(make("transformer"), tmp_path / "model")
    change_options(out, **{name: 1 << 36})  # 4 TB a matrix
    with pytest.raises(
        UserError, match=r"model cannot be used: its .* (\(68719476736, 16\)|is missing)"
    ):
        load(out)


@pytest.mark.parametrize("arch", ["transformer", "han"])
def test_positions_that_are_computed_are_bounded(arch, make, tmp_path):
    fixed = [] if arch == "transformer" else ["--no-encoder-learned-pos"]
    out = export(make(arch, *fixed), tmp_path / "model")
    change_options(out, max_source_positions=1 << 14)
    assert load(out).max_tokens == 1 << 14
    change_options(out, max_source_positions=1 << 21)
    with pytest.raises(UserError, match=r"max_source_positions and .* tables of more than"):
        load(out)


@pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.complex64, torch.uint16, "nan"])
def test_numbers_that_no_training_writes_are_refused_by_both_doors(kind, written):
    from transformers import AutoModelForSeq2SeqLM

    import hyptrans.transformers  # noqa: F401 - registers

    name = "encoder.embed_tokens.weight"
    weights = load_file(written / folder.WEIGHTS)
    if kind == "nan":
        weights[name][0, 0] = math.nan
    else:
        weights[name] = torch.ones(weights[name].shape).to(kind)
    save_file(weights, written / folder.WEIGHTS)
    said = "not finite" if kind == "nan" else f"stored as {str(kind).removeprefix('torch.')}, which"
    for read in (load, AutoModelForSeq2SeqLM.from_pretrained):
        with pytest.raises(UserError, match=f"its {name} .*{said}"):
            read(written)


@pytest.mark.parametrize("raw", [-200.0, 1e9])
def test_a_learned_curvature_out_of_range_is_refused(raw, make, tmp_path):
    out = export(make("hypformer", "--hypformer-learn-curvature"), tmp_path / "model")
    weights = load_file(out / folder.WEIGHTS)
    weights[next(name for name in weights if name.endswith(".raw"))].fill_(raw)
    save_file(weights, out / folder.WEIGHTS)
    with pytest.raises(UserError, match=r"model cannot be used: its \S+ is .* and curvatures are"):
        load(out)


def test_a_dictionary_of_other_words_and_the_same_size_is_refused(written):
    path = written / "dict.en.txt"
    first, second, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([second, first, *others]))
    with pytest.raises(UserError, match="model: a dictionary is not the one that the model was"):
        load(written)
    config = json.loads((written / folder.CONFIG).read_text())
    del config["dictionaries"]  # as 0.2.0 wrote it
    (written / folder.CONFIG).write_text(json.dumps(config))
    assert load(written).translate([""]) == [""]


OUTSIDE = "x/../../../outside"
"""A language whose dictionary is beside the folders, where there is a folder ``dict.x``."""


@pytest.mark.parametrize("side", ["source_lang", "target_lang"])
def test_a_path_for_a_language_of_a_checkpoint_is_not_taken(side, make, prepared, tmp_path):
    data = shutil.copytree(prepared, tmp_path / "data")
    (data / "data-bin" / "dict.x").mkdir()
    shutil.copy(data / "data-bin" / "dict.en.txt", tmp_path / "outside.txt")
    path = make("transformer")
    state = torch.load(path, weights_only=True)
    state["cfg"]["task"].update({"source_lang": "en", "target_lang": "de", side: OUTSIDE})
    torch.save(state, path)
    with pytest.raises(UserError, match="cannot be used: its languages are not two names"):
        checkpoint.read(path, data)


def test_no_folder_is_written_with_a_path_for_a_language(make, tmp_path):
    contents = checkpoint.read(make("transformer"))
    contents = dataclasses.replace(contents, languages=("en", OUTSIDE))
    out = tmp_path / "a" / "b" / "out"
    with pytest.raises(UserError, match=r"cannot be written to \S+out: its languages are not two"):
        folder.write(contents, out, card="")
    assert not (tmp_path / "a").exists()


def test_parameters_that_are_no_safetensors_are_refused(written, make, tmp_path):
    shutil.copy(make("hybonet"), written / folder.WEIGHTS)
    with pytest.raises(UserError, match=r"model\.safetensors is damaged or no safetensors file"):
        load(written)


def test_a_dictionary_of_another_size_is_refused(make, prepared, tmp_path):
    data = shutil.copytree(prepared, tmp_path / "data")
    with (data / "data-bin" / "dict.en.txt").open("a") as file:
        file.write("zz 1\n")
    path = make("hybonet")
    symbols = len(torch.load(path, weights_only=True)["model"]["encoder.embed_tokens.weight"])
    wanted = rf"weight is \({symbols}, 15\), and \({symbols + 1}, 15\) by its options and dicti"
    with pytest.raises(UserError, match=wanted):
        hyptrans.load(path, data=data)


def test_a_missing_or_superfluous_parameter_is_told(written):
    weights = load_file(written / folder.WEIGHTS)
    kept = weights.pop("encoder.layers.0.attention.query.weight", None)
    if kept is None:
        weights.pop(next(name for name in weights if name.startswith("encoder.layers.0.")))
    save_file(weights, written / folder.WEIGHTS)
    with pytest.raises(UserError, match="parameters and options do not go together"):
        load(written)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere-at-all", "nowhere-at-all"),
        ("", "an empty name"),
        ("../runs", r"\.\./runs"),
        ("checkpoints/checkpoint_best.pt", r"checkpoints/checkpoint_best\.pt"),
        ("here/model", "here/model"),
    ],
)
def test_a_place_that_is_nothing_is_named(name, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(UserError, match=f"{said} is neither a file or folder.*nor a repository"):
        hyptrans.load(name)
