"""Runs that end at the worst moment, and what the next one makes of it."""

import signal
import subprocess
import sys
import textwrap

import pytest

from hyptrans.dataprep import stages
from tests.dataprep.conftest import (
    REPOSITORY,
    error_of,
    make_sentences,
    tree,
    write,
)

OPTIONS = ["--raw-text", "--vocab-size", "150", "--workers", "1"]
# Runs the command over and over: the k-th time, the process kills itself at the k-th rename or
# link.
DRIVER = textwrap.dedent(
    """
    import os, signal, sys
    from tests.dataprep.conftest import fake_binarize
    from hyptrans.dataprep import stages
    from hyptrans.dataprep.commands.cli import PROGRAM

    stages.binarize = fake_binarize
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
def reference(tmp_path, run, corpus, monkeypatch):
    from tests.dataprep.conftest import fake_binarize

    monkeypatch.setattr(stages, "binarize", fake_binarize)
    words = [*corpus(train=60, valid=5, test=5), *OPTIONS]
    assert run("text", *words, "--out", tmp_path / "reference")[0] == 0
    return words, tree(tmp_path / "reference")


@pytest.mark.parametrize(("step", "when"), [(1, "before"), (5, "after"), (9, "before")])
def test_run_after_a_kill_ends_with_the_same_bytes(tmp_path, reference, step, when):
    words, expected = reference
    out = tmp_path / "out"
    assert run_killed(step, when, [*words, "--out", out])
    assert tree(out) == expected


@pytest.mark.slow
def test_run_after_a_kill_at_any_rename_ends_with_the_same_bytes(tmp_path, reference):
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


def test_finished_steps_are_not_run_again(tmp_path, run, reference, monkeypatch):
    words, expected = reference
    out = tmp_path / "out"
    working = stages.binarize

    def broken(**_):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(stages, "binarize", broken)
    message = error_of(run("text", *words, "--out", out))
    assert "disk is full" in message
    assert not (out / "manifest.json").exists()
    assert not list(out.rglob("*.partial"))

    def not_again(*_):
        raise AssertionError("learned twice")

    monkeypatch.setattr(stages, "binarize", working)
    monkeypatch.setattr("hyptrans.dataprep.steps.learn.learn", not_again)
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out) == expected


def test_steps_are_run_again_and_left_overs_removed_when_options_or_files_change(
    tmp_path, run, reference
):
    words, expected = reference
    out = tmp_path / "out"
    # stopped before its end: other options, then a file changed behind its back
    more = ["--test", *words[words.index("--test") + 1 :][:2], "--bpe", "subword-nmt"]
    more += ["--joined-dictionary", "--keep-intermediate"]
    assert run("text", *words, *more, "--out", out)[0] == 0
    assert {"bpe.codes", "raw/test1.en"} <= set(tree(out))
    (out / "manifest.json").unlink()
    path = out / "intermediate/clean/train.en"
    path.write_text(path.read_text().replace("a", "b"))
    assert run("text", *words, "--out", out)[0] == 0
    assert tree(out) == expected


@pytest.mark.parametrize("wrong", ["files", "languages"])
def test_sides_in_another_order_are_read_again(wrong, tmp_path, run, no_fairseq):
    sides = {}
    for seed, name in enumerate(("train", "valid", "test")):
        sides[name] = [
            write(tmp_path / f"{name}.{n}", make_sentences(40, lang, seed))
            for n, lang in enumerate(("en", "de"))
        ]

    def words(order, languages):
        files = [word for name, pair in sides.items() for word in (f"--{name}", *pair[::order])]
        return [*files, "--source-lang", languages[0], "--target-lang", languages[1], *OPTIONS]

    right = words(1, ["en", "de"])
    assert run("text", *right, "--out", tmp_path / "whole")[0] == 0
    mistaken = words(-1, ["en", "de"]) if wrong == "files" else words(1, ["de", "en"])
    out = tmp_path / "out"
    assert run("text", *mistaken, "--keep-intermediate", "--out", out)[0] == 0
    # as if it had been stopped before its end
    (out / "manifest.json").unlink()
    assert run("text", *right, "--out", out)[0] == 0
    assert tree(out) == tree(tmp_path / "whole")


def test_second_run_in_the_same_folder_is_refused(tmp_path, run, reference, monkeypatch):
    words, _ = reference
    out = tmp_path / "out"
    working = stages.binarize
    messages = []

    def meanwhile(**named):
        messages.append(error_of(run("text", *words, "--out", out)))
        messages.append(error_of(run("text", *words, "--out", out, "--overwrite")))
        return working(**named)

    monkeypatch.setattr(stages, "binarize", meanwhile)
    assert run("text", *words, "--out", out)[0] == 0
    assert ["another run is at work" in message for message in messages] == [True, True]
