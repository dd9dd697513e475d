"""The hub path, for real through ``datasets``, on local data sets of the hub's schema."""

import datasets
import pytest

from hyptrans.data.sources import hub
from tests.data.conftest import encoded, error_of, make_sentences, manifest_of

SMALL = ["--vocab-size", 60, "--workers", 1, "--source-lang", "de", "--target-lang", "en"]


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
    else:
        for name, split in sets.items():
            getattr(split, f"to_{kind}")(folder / f"{name}.{kind}")
    return folder


@pytest.mark.parametrize("kind", ["disk", "json", "parquet"])
def test_a_local_data_set_is_prepared_like_files(tmp_path, run, kind):
    hub = make(tmp_path / "hub", kind)
    out = tmp_path / "out"
    status, _, err = run("text", "--hub", hub, "--out", out, *SMALL)
    assert status == 0, err
    manifest = manifest_of(out)
    steps = manifest["steps"]
    assert [steps[f"read {name}"]["pairs"] for name in ("train", "valid", "test")] == [230, 20, 20]
    assert list(manifest["inputs"]) == [str(hub)]
    assert len(encoded(out, "test", "de")) == 20
    assert (out / "raw/test.en").read_text().split("\n")[0].endswith("en's.   !")


def test_a_missing_split_column_or_language_gives_a_one_sentence_error(tmp_path, run):
    hub = make(tmp_path / "hub", "json", names=("train", "validation"))
    words = ["--out", tmp_path / "out", *SMALL]
    assert "has no split 'test', only" in error_of(run("text", "--hub", hub, *words))
    for number, (row, problem) in enumerate(
        (
            ({"text": "a"}, "row 1 has no text for de and en, only columns text"),
            ({"translation": {"de": "a", "fr": "b"}}, "row 1 has no text for de and en"),
            ({"de": "a", "translation": "b"}, "row 1 has no text for de and en"),
        )
    ):
        folder = tmp_path / str(number)
        sets = {name: datasets.Dataset.from_list([row]) for name in ("train", "test")}
        datasets.DatasetDict(sets).save_to_disk(folder)
        assert problem in error_of(run("text", "--hub", folder, *words))


def test_an_empty_split_gives_a_one_sentence_error(tmp_path, run, monkeypatch):
    empty = datasets.Dataset.from_dict({"translation": []})
    found = {"train": empty, "test": empty}
    monkeypatch.setattr(hub, "_load", lambda *_: found)
    monkeypatch.chdir(tmp_path)
    message = error_of(run("text", "--hub", "some/set", "--out", "out", *SMALL))
    assert message == "error: the train set has no pair"


@pytest.mark.parametrize("name", ["nobody/no-such-set", "empty"])
def test_an_unloadable_data_set_gives_a_one_sentence_error(tmp_path, run, monkeypatch, name):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    message = error_of(run("text", "--hub", name, "--out", tmp_path / "out", *SMALL))
    assert f"--hub {name} cannot be loaded" in message


def test_a_missing_validation_set_takes_every_100th_training_pair(tmp_path, run):
    folder = make(tmp_path / "hub", "json", names=("train", "test"))
    out = tmp_path / "out"
    words = ["--hub", folder, "--out", out, *SMALL]
    assert run("text", *words)[0] == 0
    assert [len(encoded(out, name, "en")) for name in ("train", "valid")] == [228, 2]
