"""Runs that end at the worst moment, and what the next one makes of it."""

import signal
import subprocess
import sys
import textwrap

import pytest

from hyptrans.data import indexed
from tests.data.conftest import REPOSITORY, error_of, tree

OPTIONS = ["--raw-text", "--vocab-size", "150", "--workers", "1"]
# Runs the command over and over: the k-th time, the process kills itself at the k-th rename or
# link.
DRIVER = textwrap.dedent(
    """
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

    out = words[words.index("--out") + 1]
    killed = run(True)
    assert not os.path.exists(out + "/manifest.json") or killed == 0 or when == "after"
    print(killed, run(False))
    """
)


def run_killed(step, when, words):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(step), when, *map(str, words)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed, status = map(int, done.stdout.split("\n")[-2].split())
    assert status == 0, done.stderr
    return killed == -signal.SIGKILL


@pytest.fixture
def reference(tmp_path, run, corpus):
    words = [*corpus(train=60, valid=5, test=5), *OPTIONS]
    assert run("text", *words, "--out", tmp_path / "reference")[0] == 0
    return words, tree(tmp_path / "reference")


@pytest.mark.parametrize(("step", "when"), [(1, "before"), (5, "after"), (9, "before")])
def test_rerun_after_a_kill_gives_identical_bytes(tmp_path, reference, step, when):
    words, expected = reference
    out = tmp_path / "out"
    assert run_killed(step, when, [*words, "--out", out])
    assert tree(out) == expected


@pytest.mark.slow
def test_rerun_after_a_kill_at_any_rename_gives_identical_bytes(tmp_path, reference):
    words, expected = reference
    for when in ("before", "after"):
        step = 0
        killed = True
        while killed:
            step += 1
            out = tmp_path / f"{when}{step}"
            killed = run_killed(step, when, [*words, "--out", out])
            assert tree(out) == expected, (step, when)
        assert step > 20


def full_disk(*_):
    raise OSError(28, "No space left on device", "somewhere")


def test_finished_steps_are_not_run_again(tmp_path, run, reference, monkeypatch):
    words, expected = reference
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(indexed, "write", full_disk)
        message = error_of(run("text", *words, "--out", out))
    assert "disk is full" in message
    assert not (out / "manifest.json").exists()
    assert not list(out.rglob("*.partial"))

    def not_again(*_):
        raise AssertionError("learned twice")

    monkeypatch.setattr("hyptrans.data.learn.learn", not_again)
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out) == expected


def test_changed_options_or_files_repeat_every_step_and_remove_leftovers(
    tmp_path, run, reference, monkeypatch
):
    words, expected = reference
    out = tmp_path / "out"
    more = ["--test", *words[words.index("--test") + 1 :][:2], "--bpe", "subword-nmt"]
    more += ["--joined-dictionary", "--keep-intermediate"]
    # stopped when some of the result is in place
    with monkeypatch.context() as patch:
        patch.setattr("hyptrans.data.pipeline.write_json", full_disk)
        error_of(run("text", *words, *more, "--out", out))
    assert {"bpe.codes", "raw/test1.en"} <= set(tree(out))
    assert not (out / "manifest.json").exists()
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out) == expected


def test_kept_texts_stay_until_replaced(tmp_path, run, reference):
    """Those that ``--keep-intermediate`` of an earlier run kept."""
    words, expected = reference
    out = tmp_path / "out"
    assert run("text", *words, "--keep-intermediate", "--out", out)[0] == 0
    kept = tree(out / "intermediate")
    assert "clean/train.en" in kept
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out / "intermediate") == kept
    assert run("text", *words, "--out", out, "--overwrite")[0] == 0
    assert tree(out) == expected


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "kept"])
def test_a_refused_run_keeps_the_texts_of_an_earlier_one(
    stopped, tmp_path, run, reference, monkeypatch
):
    words, expected = reference
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        if stopped:
            patch.setattr(indexed, "write", full_disk)
        assert run("text", *words, "--keep-intermediate", "--out", out)[0] == 2 * stopped
    made = tree(out / "intermediate")
    (tmp_path / "empty.en").touch()
    other = [*words, "--train", tmp_path / "empty.en", tmp_path / "empty.en"]
    options = [] if stopped else ["--overwrite"]
    assert "empty" in error_of(run("text", *other, *options, "--out", out))
    assert tree(out / "intermediate").keys() >= made.keys() - {"steps/read train.json"}
    assert run("text", *words, *options, "--out", out)[0] == 0
    assert tree(out) == expected


def test_the_next_run_cleans_up_after_a_kill(tmp_path, run, reference):
    words, expected = reference
    out = tmp_path / "out"
    assert run("text", *words, "--keep-intermediate", "--out", out)[0] == 0
    path = out / "manifest.json"
    path.write_bytes(expected["manifest.json"])
    assert (out / "intermediate").is_dir()
    assert "finished already" in run("text", *words, "--out", out)[1]
    assert tree(out) == expected


def test_prepare_refuses_to_replace_its_input(tmp_path, run, reference):
    words, _ = reference
    out = tmp_path / "out"
    assert run("text", *words, "--keep-intermediate", "--out", out)[0] == 0
    before = tree(out)
    own = [out / f"intermediate/clean/train.{lang}" for lang in ("en", "de")]
    message = error_of(run("text", *words, "--train", *own, "--out", out, "--overwrite"))
    assert f"{own[0]} is input, and {out / 'intermediate'} will be replaced" in message
    assert tree(out) == before


def test_a_concurrent_run_in_the_same_folder_is_refused(tmp_path, run, reference, monkeypatch):
    words, _ = reference
    out = tmp_path / "out"
    working, messages = indexed.write, []

    def meanwhile(*named):
        if not messages:
            messages.append(error_of(run("text", *words, "--out", out)))
            messages.append(error_of(run("text", *words, "--out", out, "--overwrite")))
        return working(*named)

    monkeypatch.setattr(indexed, "write", meanwhile)
    assert run("text", *words, "--out", out)[0] == 0
    assert ["another run is at work" in message for message in messages] == [True, True]
