"""Output folders in which files of another stand, or no longer all that was written."""

import json
from pathlib import Path

import pytest

from hyptrans.data import indexed
from tests.data.commands.test_named import iwslt_tree
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
@pytest.mark.parametrize("link", [None, "file", "from outside", "out"])
def test_prepare_refuses_to_replace_its_input(tmp_path, run, corpus, options, link):
    words = [str(word) for word in corpus(folder="corpus/raw")]
    out = tmp_path / "corpus"
    if link == "file":
        # the text is elsewhere, the link to it would be lost
        (out / "raw/train.en").rename(tmp_path / "train.en")
        (out / "raw/train.en").symlink_to(tmp_path / "train.en")
    if link == "from outside":
        (tmp_path / "train.en").symlink_to(out / "raw/train.en")
        words[1] = str(tmp_path / "train.en")
    if link == "out":
        out = tmp_path / "linked"
        out.symlink_to("corpus")
    before = tree(tmp_path)
    message = error_of(run("text", *words, *RAW, "--out", out, *options))
    assert f"{out}/raw/test.de was not made by this command, which would replace it" in message
    assert tree(tmp_path) == before


@ANY
def test_prepare_refuses_input_inside_its_own_work_folder(tmp_path, run, options):
    out = tmp_path / "out"
    raw = iwslt_tree(out / "intermediate/de-en")
    before = tree(out)
    words = ["--raw", raw, "--vocab-size", 60, "--out", out, *options]
    assert "was not made by this command" in error_of(run("iwslt14", *words))
    assert tree(out) == before


@ANY
@pytest.mark.parametrize(
    "name", ["raw/notes.txt", "data-bin/train.en-de.en.bin", "bpe.codes", "intermediate/notes.txt"]
)
def test_prepare_leaves_foreign_files_alone(tmp_path, run, corpus, options, name):
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
def test_overwrite_keeps_files_added_to_a_finished_folder(run, finished, name):
    words, out, before = finished
    (out / name).write_text("mine")
    assert "nothing to do" in run("text", *words)[1]
    message = error_of(run("text", *words, "--joined-dictionary", "--overwrite"))
    assert f"{out / name} was not made by this command" in message
    assert tree(out) == {**before, name: b"mine"}
    (out / name).unlink()
    assert run("text", *words, "--joined-dictionary", "--overwrite")[0] == 0


@ANY
def test_prepare_keeps_files_added_to_a_stopped_run(tmp_path, run, finished, monkeypatch, options):
    words, _, expected = finished
    out = tmp_path / "stopped"
    words = [*words, "--out", out]
    with monkeypatch.context() as patch:
        patch.setattr("hyptrans.data.pipeline.write_json", full_disk)
        assert "disk is full" in error_of(run("text", *words))
    notes = out / "raw/notes.txt"
    notes.write_text("mine")
    assert f"{notes} was not made by this command" in error_of(run("text", *words, *options))
    assert notes.read_text() == "mine"
    notes.unlink()
    assert run("text", *words, *options)[0] == 0
    assert tree(out) == expected


@pytest.mark.parametrize(
    "wrong", ["train.de", "test.de", "vocabulary", "binarize", "an archive that is none"]
)
def test_old_files_stay_until_their_replacements_are_complete(
    run, finished, tmp_path, monkeypatch, wrong
):
    words, out, before = finished
    if wrong in ("train.de", "test.de"):
        path = next(path for path in map(Path, words[1:]) if path.name == wrong)
        path.write_text(path.read_text().partition("\n")[2])
        message = error_of(run("text", *words, "--overwrite"))
        assert "the sides differ in length" in message
    elif wrong == "vocabulary":
        message = error_of(run("text", *words, "--vocab-size", 3, "--overwrite"))
        assert "cannot learn --vocab-size 3" in message
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


def test_prepare_leaves_a_finished_folder_alone(run, finished):
    words, out, before = finished
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    status, shown, _ = run("text", *words)
    assert (status, "nothing to do" in shown) == (0, True)
    others = run("text", *words, "--joined-dictionary")
    assert "is finished, with other options or input" in error_of(others)
    assert tree(out) == before
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == times


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("gone", "but {path} was changed or removed"),
        ("another", "but {path} was changed or removed"),
        ("earlier release", "with other options or input, or by another release"),
    ],
)
def test_changed_outputs_are_replaced_only_with_overwrite(run, finished, change, why):
    words, out, before = finished
    path = out / "raw/test.de"
    if change == "gone":
        path.unlink()
    elif change == "another":
        path.write_text("other\n")
    else:
        record = json.loads((out / "manifest.json").read_text())
        (out / "manifest.json").write_text(json.dumps({**record, "made_from": None}))
    message = error_of(run("text", *words))
    assert f"{why.format(path=path)}; choose another --out, or --overwrite" in message
    assert run("text", *words, "--overwrite")[0] == 0
    assert tree(out) == before


def test_a_half_replaced_folder_is_not_finished(run, finished, monkeypatch):
    words, out, before = finished
    with monkeypatch.context() as patch:
        patch.setattr("hyptrans.data.pipeline.write_json", full_disk)
        error_of(run("text", *words, "--joined-dictionary", "--overwrite"))
    assert not (out / "manifest.json").exists()
    assert run("text", *words)[0] == 0
    assert tree(out) == before


def test_inputs_are_identified_by_content_not_by_path(tmp_path, run, finished):
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
