"""Output folders in which files of another stand, or no longer all that was written."""

import json
import os
import shutil
from pathlib import Path

import pytest

from hyptrans.data import indexed
from tests.data.commands.test_iwslt14 import corpus as iwslt_tree
from tests.data.conftest import error_of, tree

RAW = ["--raw-text", "--vocab-size", "150", "--workers", "1"]
ANY = pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["plain", "overwrite"])


@pytest.fixture
def finished(tmp_path, run, corpus):
    """The words of a finished run, its folder, and what is in it."""
    out = tmp_path / "out"
    words = [*corpus(train=60, valid=5, test=5), *RAW, "--out", out]
    assert run("text", *words)[0] == 0
    return words, out, tree(out)


def full_disk(*_):
    raise OSError(28, "No space left on device", "somewhere")


@ANY
@pytest.mark.parametrize("link", [None, "file", "from outside", "folder", "out"])
def test_input_that_would_be_replaced_is_refused_and_stays(
    tmp_path, run, corpus, monkeypatch, options, link
):
    words = [str(word) for word in corpus(folder="corpus/raw")]
    out = tmp_path / "corpus"
    monkeypatch.chdir(tmp_path)
    words = [os.path.relpath(word) if word.startswith("/") else word for word in words]
    if link == "file":
        # the text is elsewhere, the link to it would be lost
        (out / "raw/train.en").rename(tmp_path / "train.en")
        (out / "raw/train.en").symlink_to(tmp_path / "train.en")
    if link == "from outside":
        (tmp_path / "train.en").symlink_to(out / "raw/train.en")
        words[1] = "train.en"
    if link == "folder":
        (tmp_path / "names").symlink_to(out / "raw")
        words = [word.replace("corpus/raw", "names") for word in words]
    if link == "out":
        out = tmp_path / "linked"
        out.symlink_to("corpus")
    before = tree(tmp_path)
    message = error_of(run("text", *words, *RAW, "--out", out, *options))
    first = words[1]
    assert f"{first} is an input, and what is in {out}/raw is replaced" in message
    assert "choose another --out" in message
    assert tree(tmp_path) == before


@ANY
def test_unpacked_files_where_the_command_works_are_refused_and_stay(tmp_path, run, options):
    out = tmp_path / "out"
    raw = iwslt_tree(out / "intermediate/de-en")
    before = tree(out)
    words = ["--raw", raw, "--vocab-size", 60, "--out", out, *options]
    assert f"what is in {out}/intermediate is replaced" in error_of(run("iwslt14", *words))
    assert tree(out) == before


@ANY
@pytest.mark.parametrize(
    "name", ["raw/notes.txt", "data-bin/train.en-de.en.bin", "bpe.codes", "intermediate/notes.txt"]
)
def test_file_of_another_is_not_touched(tmp_path, run, corpus, options, name):
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")
    words = [*corpus(), *RAW, "--out", out, *options]
    # the second time as well: the first has left nothing that looks like a run
    for _ in range(2):
        message = error_of(run("text", *words))
        assert f"{out / name} was not made by this command" in message
        assert "choose another --out, or move it away" in message
        assert tree(out) == {name: b"mine"}


@pytest.mark.parametrize("name", ["raw/test.hyp", "data-bin/notes", "bpe.codes"])
def test_file_added_to_a_finished_folder_outlives_overwrite(run, finished, name):
    words, out, before = finished
    (out / name).write_text("mine")
    assert "nothing to do" in run("text", *words)[1]
    message = error_of(run("text", *words, "--joined-dictionary", "--overwrite"))
    assert f"{out / name} was not made by this command" in message
    assert tree(out) == {**before, name: b"mine"}
    (out / name).unlink()
    assert run("text", *words, "--joined-dictionary", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    "wrong", ["train.de", "test.de", "vocabulary", "binarize", "an archive that is none"]
)
def test_what_is_there_stays_until_all_that_replaces_it_is_there(
    run, finished, tmp_path, monkeypatch, wrong
):
    words, out, before = finished
    if wrong in ("train.de", "test.de"):
        path = next(path for path in map(Path, words[1:]) if path.name == wrong)
        path.write_text(path.read_text().partition("\n")[2])
        message = error_of(run("text", *words, "--overwrite"))
        assert "the sides differ in length" in message
    elif wrong == "vocabulary":
        message = error_of(run("text", *words, "--vocab-size", 5000, "--overwrite"))
        assert "--vocab-size 5000 is more than this text supports" in message
    elif wrong == "binarize":
        monkeypatch.setattr(indexed, "write", full_disk)
        message = error_of(run("text", *words, "--joined-dictionary", "--overwrite"))
        assert "disk is full" in message
    else:
        (tmp_path / "a.tgz").write_text("nothing")
        archive = ["--archive", tmp_path / "a.tgz", "--out", out, "--overwrite"]
        error_of(run("iwslt14", *archive))
    left = {name: data for name, data in tree(out).items() if not name.startswith("intermediate")}
    assert left == before


def test_a_finished_folder_is_not_touched_nor_one_called_as_that_of_the_work_in_it(run, finished):
    words, out, before = finished
    notes = out / "intermediate/notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    status, shown, _ = run("text", *words)
    assert (status, "nothing to do" in shown) == (0, True)
    others = run("text", *words, "--joined-dictionary")
    assert "is finished, with other options or input" in error_of(others)
    assert tree(out) == {**before, "intermediate/notes.txt": b"mine"}
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == times


def test_a_folder_of_an_earlier_release_is_replaced_only_with_overwrite(run, finished):
    words, out, before = finished
    path = out / "manifest.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), made_from=None)))
    assert "or by another release; choose another --out, or --overwrite" in error_of(
        run("text", *words)
    )
    assert run("text", *words, "--overwrite")[0] == 0
    assert tree(out) == before


@ANY
def test_file_added_to_a_stopped_run_is_not_touched(tmp_path, run, finished, monkeypatch, options):
    words, _, expected = finished
    out = tmp_path / "stopped"
    words = [*words, "--out", out]
    working = indexed.write

    monkeypatch.setattr(indexed, "write", full_disk)
    assert "disk is full" in error_of(run("text", *words))
    notes = out / "raw/notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    monkeypatch.setattr(indexed, "write", working)
    assert f"{notes} was not made by this command" in error_of(run("text", *words, *options))
    assert notes.read_text() == "mine"
    notes.unlink()
    assert run("text", *words, *options)[0] == 0
    assert tree(out) == expected


def test_a_folder_that_is_half_replaced_does_not_count_as_finished(run, finished, monkeypatch):
    words, out, before = finished
    with monkeypatch.context() as patch:
        patch.setattr("hyptrans.data.pipeline.write_json", full_disk)
        error_of(run("text", *words, "--joined-dictionary", "--overwrite"))
    assert not (out / "manifest.json").exists()
    assert run("text", *words)[0] == 0
    assert tree(out) == before


def test_work_that_a_killed_run_left_is_removed_by_the_next_run(run, finished, tmp_path):
    words, out, before = finished
    assert run("text", *words, "--out", out, "--overwrite", "--keep-intermediate")[0] == 0
    # as a kill right after the manifest leaves it
    (out / "intermediate/kept").unlink()
    assert "nothing to do" in run("text", *words)[1]
    assert tree(out) == before
    assert not (out / "intermediate").exists()


@pytest.mark.parametrize("name", ["data-bin", "data-bin/dict.en.txt", "raw/test.de"])
def test_output_that_is_gone_is_made_again(run, finished, name):
    words, out, before = finished
    path = out / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    status, shown, err = run("text", *words)
    assert (status, "nothing to do" in shown) == (0, False)
    assert f"{path}" in err
    assert "is gone, so all is made again" in err
    assert tree(out) == before


@pytest.mark.parametrize(
    ("content", "gone"), [("more\n", None), ("of the size", "data-bin/dict.en.txt")]
)
def test_output_that_was_changed_is_replaced_only_with_overwrite(run, finished, content, gone):
    words, out, before = finished
    path = out / "raw/test.de"
    path.write_text(content.ljust(path.stat().st_size, ".") if gone else content)
    if gone:
        (out / gone).unlink()
    changed = tree(out)
    message = error_of(run("text", *words))
    assert f"{path} was changed after it was made" in message
    assert "--overwrite to make it again" in message
    assert tree(out) == changed
    assert run("text", *words, "--overwrite")[0] == 0
    assert tree(out) == before


def test_a_file_system_without_links_has_copies(run, finished, monkeypatch):
    words, out, before = finished

    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    assert run("text", *words, "--overwrite")[0] == 0
    assert tree(out) == before


def test_a_language_is_one_also_where_a_folder_has_its_name(tmp_path, run, corpus, monkeypatch):
    words = [str(word) for word in corpus(train=60, valid=5, test=5)]
    monkeypatch.chdir(tmp_path)
    given = []
    for word in words:
        path = Path(word)
        if path.is_file():
            # as de/train.txt, which does not tell its language
            place = Path(path.suffix[1:]) / f"{path.stem}.txt"
            place.parent.mkdir(exist_ok=True)
            path.rename(place)
            given.append(str(place))
        else:
            given.append(word)
    given += [*RAW, "--out", tmp_path / "out"]
    mistaken = [*given, "--source-lang", "de", "--target-lang", "en"]
    assert run("text", *mistaken)[0] == 0
    assert "nothing to do" in run("text", *mistaken)[1]
    corrected = run("text", *given, "--source-lang", "en", "--target-lang", "de")
    assert "is finished, with other options or input" in error_of(corrected)


def test_inputs_that_have_moved_are_the_same_and_others_of_their_name_are_not(
    tmp_path, run, finished
):
    words, out, before = finished
    places = {path: tmp_path / "moved" / path.name for path in map(Path, words) if path.is_file()}
    (tmp_path / "moved").mkdir()
    for path, place in places.items():
        path.rename(place)
    words = [str(places.get(Path(word), word)) for word in words]
    assert "nothing to do" in run("text", *words)[1]
    path = tmp_path / "moved" / "train.de"
    path.write_text(path.read_text().replace("a", "e"))
    assert "is finished, with other options or input" in error_of(run("text", *words))
    assert tree(out) == before
