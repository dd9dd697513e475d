"""Output folders of runs that end at the worst moment, or in which files of another stand."""

import json
import signal
from pathlib import Path

import pytest

from hyptrans.data import indexed
from tests.data.conftest import error_of, tree
from tests.programs import ROOT, python

RAW = ["--raw-text", "--vocab-size", "150", "--workers", "1"]
ANY = pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["plain", "overwrite"])
# Runs the command over and over: the k-th time, the process kills itself at the k-th rename or
# link.
DRIVER = """
import os, signal, sys
from hyptrans.data.commands.cli import PROGRAM

step, when, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
calls = 0

def deadly(function):
    def called(source, target):
        global calls
        calls += 1
        if calls == step and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        function(source, target)
        if calls == step and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    return called

def run(kills):
    child = os.fork()
    if child == 0:
        if kills:
            os.replace, os.link = deadly(os.replace), deadly(os.link)
        os._exit(PROGRAM.run(["text", *words]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

out = words[-1]
killed = run(True)
assert not os.path.exists(out + "/manifest.json") or killed == 0 or when == "after"
print(killed, run(False))
"""


@pytest.fixture
def finished(tmp_path, run, corpus):
    """The words of a finished run, its folder, and what is in it."""
    out = tmp_path / "out"
    words = [*corpus(train=60, valid=5, test=5), *RAW, "--out", out]
    assert run("text", *words)[0] == 0
    return words, out, tree(out)


@pytest.fixture
def fails(run, monkeypatch):
    """Run a command for which the disk is full at a function; returns the sentence."""

    def full_disk(*_):
        raise OSError(28, "No space left on device", "somewhere")

    def fails(place, words):
        with monkeypatch.context() as patch:
            patch.setattr(f"hyptrans.data.{place}", full_disk)
            message = error_of(run("text", *words))
        assert "disk is full" in message

    return fails


def run_killed(step, when, words):
    done = python(DRIVER, step, when, *words, cwd=ROOT)
    killed, status = map(int, done.stdout.split("\n")[-2].split())
    assert status == 0, done.stderr
    return killed == -signal.SIGKILL


@pytest.mark.parametrize(("step", "when"), [(1, "before"), (5, "after"), (9, "before")])
def test_rerun_after_a_kill_gives_identical_bytes(tmp_path, finished, step, when):
    words, _, expected = finished
    assert run_killed(step, when, [*words, "--out", tmp_path / "new"])
    assert tree(tmp_path / "new") == expected


@pytest.mark.slow
def test_rerun_after_a_kill_at_any_rename_gives_identical_bytes(tmp_path, finished):
    words, _, expected = finished
    for when in ("before", "after"):
        step = 0
        killed = True
        while killed:
            step += 1
            out = tmp_path / f"{when}{step}"
            killed = run_killed(step, when, [*words, "--out", out])
            assert tree(out) == expected, (step, when)
        assert step > 20


def test_finished_steps_are_not_run_again(tmp_path, run, finished, fails, monkeypatch):
    words, _, expected = finished
    out = tmp_path / "new"
    fails("indexed.write", [*words, "--out", out])
    assert not (out / "manifest.json").exists()
    assert not list(out.rglob("*.partial"))

    def not_again(*_):
        raise AssertionError("learned twice")

    monkeypatch.setattr("hyptrans.data.learn.learn", not_again)
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out) == expected


@pytest.mark.parametrize("name", ["new", "out"])
def test_changed_options_repeat_every_step_and_remove_leftovers(
    name, tmp_path, run, finished, fails
):
    words, _, expected = finished
    out = tmp_path / name
    more = ["--test", *words[words.index("--test") + 1 :][:2], "--bpe", "subword-nmt"]
    more += ["--joined-dictionary", "--keep-intermediate", "--overwrite", "--out", out]
    # stopped when some of the result is in place, or has replaced another
    fails("pipeline.write_json", [*words, *more])
    assert {"bpe.codes", "raw/test1.en"} <= set(tree(out))
    assert not (out / "manifest.json").exists()
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out) == expected


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "kept"])
def test_a_refused_run_keeps_the_texts_of_an_earlier_one(stopped, tmp_path, run, finished, fails):
    words, _, expected = finished
    out = tmp_path / "new"
    words = [*words, "--out", out]
    if stopped:
        fails("indexed.write", words)
    else:
        assert run("text", *words, "--keep-intermediate")[0] == 0
    made = tree(out / "intermediate")
    assert "clean/train.en" in made
    (tmp_path / "empty.en").touch()
    other = [*words, "--train", tmp_path / "empty.en", tmp_path / "empty.en"]
    options = [] if stopped else ["--overwrite"]
    assert "empty" in error_of(run("text", *other, *options))
    assert tree(out / "intermediate").keys() >= made.keys() - {"steps/read train.json"}
    assert run("text", *words, *options)[0] == 0
    assert tree(out) == expected


def test_the_next_run_cleans_up_after_a_kill(run, finished):
    words, out, expected = finished
    assert run("text", *words, "--keep-intermediate", "--overwrite")[0] == 0
    (out / "manifest.json").write_bytes(expected["manifest.json"])
    assert (out / "intermediate").is_dir()
    assert "finished already" in run("text", *words)[1]
    assert tree(out) == expected


def test_prepare_refuses_input_from_its_own_work_folder(run, finished):
    words, out, _ = finished
    assert run("text", *words, "--keep-intermediate", "--overwrite")[0] == 0
    before = tree(out)
    own = [out / f"intermediate/clean/train.{lang}" for lang in ("en", "de")]
    message = error_of(run("text", *words, "--train", *own, "--overwrite"))
    assert f"{own[0]} is input, and {out / 'intermediate'} will be replaced" in message
    assert tree(out) == before


def test_a_concurrent_run_in_the_same_folder_is_refused(tmp_path, run, finished, monkeypatch):
    words = [*finished[0], "--out", tmp_path / "new"]
    working, messages = indexed.write, []

    def meanwhile(*named):
        if not messages:
            messages.append(error_of(run("text", *words)))
            messages.append(error_of(run("text", *words, "--overwrite")))
        return working(*named)

    monkeypatch.setattr(indexed, "write", meanwhile)
    assert run("text", *words)[0] == 0
    assert ["another run is at work" in message for message in messages] == [True, True]


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


@ANY
def test_prepare_keeps_files_added_to_a_stopped_run(tmp_path, run, finished, fails, options):
    words, _, expected = finished
    out = tmp_path / "stopped"
    words = [*words, "--out", out]
    fails("pipeline.write_json", words)
    notes = out / "raw/notes.txt"
    notes.write_text("mine")
    assert f"{notes} was not made by this command" in error_of(run("text", *words, *options))
    assert notes.read_text() == "mine"
    notes.unlink()
    assert run("text", *words, *options)[0] == 0
    assert tree(out) == expected


@pytest.mark.parametrize("wrong", ["train.de", "test.de", "vocabulary", "binarize"])
def test_old_files_stay_until_their_replacements_are_complete(run, finished, fails, wrong):
    words, out, before = finished
    if wrong == "vocabulary":
        message = error_of(run("text", *words, "--vocab-size", 3, "--overwrite"))
        assert "cannot learn --vocab-size 3" in message
    elif wrong == "binarize":
        fails("indexed.write", [*words, "--joined-dictionary", "--overwrite"])
    else:
        path = next(path for path in map(Path, words[1:]) if path.name == wrong)
        path.write_text(path.read_text().partition("\n")[2])
        message = error_of(run("text", *words, "--overwrite"))
        assert "the sides differ in length" in message
    left = {name: data for name, data in tree(out).items() if not name.startswith("intermediate")}
    assert left == before


def test_a_finished_folder_stays_as_it_is_even_if_its_input_moves(tmp_path, run, finished):
    words, out, before = finished
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    (tmp_path / "moved").mkdir()
    places = {path: tmp_path / "moved" / path.name for path in map(Path, words) if path.is_file()}
    for path, place in places.items():
        path.rename(place)
    words = [str(places.get(Path(word), word)) for word in words]
    assert "nothing to do" in run("text", *words)[1]
    another = "is finished, with other options or input"
    assert another in error_of(run("text", *words, "--joined-dictionary"))
    path = tmp_path / "moved" / "train.de"
    path.write_text(path.read_text().replace("a", "e"))
    assert another in error_of(run("text", *words))
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
