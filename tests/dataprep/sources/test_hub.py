"""The hub path, for real through ``datasets``, on local data sets of the hub's schema."""

import json
import os

import datasets
import pytest

from hyptrans.dataprep.sources import hub
from hyptrans.support.errors import UserError
from tests.dataprep.conftest import error_of, make_sentences, manifest_of, tree

SMALL = ["--vocab-size", 60, "--workers", 1]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def rows(count, seed):
    pairs = zip(make_sentences(count, "de", seed), make_sentences(count, "en", seed), strict=True)
    # a line separator inside a text must not become a line
    return [{"translation": {"de": f"{de}\n!", "en": f"{en}\u2028\r\n!"}} for de, en in pairs]


def make(folder, kind, names=("train", "validation", "test")):
    sets = datasets.DatasetDict(
        {
            name: datasets.Dataset.from_list(rows({"train": 230}.get(name, 20), seed))
            for seed, name in enumerate(names)
        }
    )
    folder.mkdir()
    if kind == "disk":
        sets.save_to_disk(folder)
    for name, split in sets.items():
        if kind == "json":
            split.to_json(folder / f"{name}.json")
        if kind == "parquet":
            split.to_parquet(folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("kind", ["disk", "json", "parquet"])
def test_local_data_set_is_prepared_like_files(tmp_path, run, no_fairseq, kind):
    hub = make(tmp_path / "hub", kind)
    out = tmp_path / "out"
    status, _, err = run("iwslt14", "--hub", hub, "--out", out, *SMALL)
    assert "training text too" not in err
    assert status == 0, err
    manifest = manifest_of(out)
    steps = manifest["steps"]
    assert [steps[f"read {name}"]["pairs"] for name in ("train", "valid", "test")] == [230, 20, 20]
    assert list(manifest["inputs"]) == [str(hub)]
    assert (out / "data-bin/test.de").read_text().count("\n") == 20
    assert (out / "raw/test.en").read_text().split("\n")[0].endswith("en's.   !")


def test_without_a_validation_split_every_23rd_pair_is_valid(tmp_path, run, no_fairseq):
    hub = make(tmp_path / "hub", "json", names=("train", "test"))
    out = tmp_path / "out"
    assert run("iwslt14", "--hub", hub, "--out", out, *SMALL)[0] == 0
    assert (out / "data-bin/valid.de").read_text().count("\n") == 10


def test_wmt14_takes_its_sets_from_the_splits(tmp_path, run, no_fairseq):
    hub = make(tmp_path / "hub", "json")
    out = tmp_path / "out"
    words = ["--hub", hub, "--out", out, *SMALL, "--source-lang", "en"]
    assert run("wmt14", *words)[0] == 0
    raw = {name for name in tree(out) if name.startswith("raw/")}
    assert raw == {"raw/test.en", "raw/test.de", "raw/test1.en", "raw/test1.de"}


def test_missing_split_column_or_language_is_a_sentence(tmp_path, run):
    hub = make(tmp_path / "hub", "json", names=("train", "validation"))
    words = ["--out", tmp_path / "out", *SMALL]
    assert "has no split 'test', only" in error_of(run("iwslt14", "--hub", hub, *words))
    for number, (row, problem) in enumerate(
        (
            ({"text": "a"}, "has no column 'translation', only text"),
            ({"translation": {"de": "a", "fr": "b"}}, "row 1 has no text for de and en"),
            ({"de": "a", "translation": "b"}, "row 1 has no text for de and en"),
        )
    ):
        folder = tmp_path / str(number)
        sets = {name: datasets.Dataset.from_list([row]) for name in ("train", "test")}
        datasets.DatasetDict(sets).save_to_disk(folder)
        assert problem in error_of(run("iwslt14", "--hub", folder, *words))


def test_empty_split_of_a_set_from_the_hub_is_a_sentence(tmp_path, run, monkeypatch):
    empty = datasets.Dataset.from_dict({"translation": []})
    monkeypatch.setattr(hub, "load", lambda *_: {"train": empty, "test": empty})
    monkeypatch.chdir(tmp_path)
    message = error_of(run("iwslt14", "--hub", "some/set", "--out", "out", *SMALL))
    assert message == "error: the train set has no pair in --hub some/set, split train"


@pytest.mark.parametrize("name", ["nobody/no-such-set", "empty"])
def test_data_set_that_cannot_be_loaded_is_a_sentence(tmp_path, run, monkeypatch, name):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    message = error_of(run("iwslt14", "--hub", name, "--out", tmp_path / "out"))
    assert f"--hub {name} cannot be loaded" in message


README = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: {0}
  - split: test
    path: {0}
---
"""


@pytest.mark.parametrize("path", ["{}/secret.jsonl", "../secret.jsonl", "link.jsonl"])
def test_a_data_set_takes_no_text_from_elsewhere(tmp_path, run, path):
    (tmp_path / "secret.jsonl").write_text(json.dumps(rows(1, 0)[0]))
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "own.jsonl").write_text(json.dumps(rows(1, 0)[0]))
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (folder / "README.md").write_text(README.format(path.format(tmp_path)))
    with pytest.raises(UserError, match=f"--hub {folder} is refused: it takes .*, which is not in"):
        hub.load(str(folder), None, None)
    (folder / "README.md").write_text(README.format("own.jsonl"))
    assert hub.load(str(folder), None, None)["train"].num_rows == 1


@pytest.mark.parametrize("part", ["splits", "files"])
def test_a_data_set_on_disk_takes_none_either(tmp_path, part):
    make(tmp_path / "other", "disk")
    folder = make(tmp_path / "set", "disk")
    if part == "splits":
        (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["../other/train"]}))
    else:
        state = json.loads((folder / "train" / "state.json").read_text())
        (name,) = (file["filename"] for file in state["_data_files"])
        state["_data_files"] = [{"filename": f"../../other/train/{name}"}]
        (folder / "train" / "state.json").write_text(json.dumps(state))
    with pytest.raises(UserError, match=r"other/train/data.*for a part of itself, which"):
        hub.load(str(folder), None, None)


def test_a_data_set_has_no_pipes(tmp_path):
    os.mkfifo(make(tmp_path / "set", "json") / "more.json")
    with pytest.raises(UserError, match=r"--hub .* is refused: .*more\.json is a pipe or a device"):
        hub.load(str(tmp_path / "set"), None, None)


def test_a_repository_takes_no_text_from_elsewhere(monkeypatch):
    files = ["hf://datasets/some/set@1/train.json"]
    hub._check_inside("some/set", files)
    for other in ("/etc/hosts", "hf://datasets/some/set2@1/a", "https://host/a", f"{files[0]}::/a"):
        with pytest.raises(UserError, match="--hub some/set is refused: it takes "):
            hub._check_inside("some/set", [*files, other])
