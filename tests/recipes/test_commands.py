"""Commands of recipes: how they are recorded, what a log keeps, and who may run one."""

import os
from types import SimpleNamespace

import pytest

from hyptrans.support.errors import UserError
from hyptrans.support.files import take_lock
from hyptrans.support.steps import run
from recipes.common import translation
from recipes.common.commands import execute, portable
from recipes.common.translation import step

PRINT = "print('first'); print('the last word')"


def python(code):
    return ["python", "-c", code]


def test_a_command_is_recorded_without_the_folders_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HYPTRANS_DATA", str(tmp_path / "corpora"))
    out, home = tmp_path / "out", tmp_path / "home"
    words = ["fairseq-train", out / "data", f"--x={home}/data", "--save-dir", out, home / "a.pt"]
    words += [tmp_path / "corpora" / "b.gz", f"{out}er", "--lr", "0.5", "/", ""]
    assert portable([*map(str, words)], out).replace("'", "").split() == [
        *("fairseq-train", "OUT/data", "--x=~/data", "--save-dir", "OUT", "~/a.pt"),
        *("$HYPTRANS_DATA/b.gz", f"{out}er", "--lr", "0.5", "/"),
    ]


def test_a_command_is_shown_and_its_output_stays_in_the_log(tmp_path, capsys):
    log = tmp_path / "logs" / "speak.log"
    execute(
        python(PRINT),
        log,
        threads=2,
        progress=lambda line: line.strip() if "last" in line else None,
    )
    shown = capsys.readouterr().out
    assert "$ OMP_NUM_THREADS=2 " in shown
    assert "speak: the last word" in shown
    assert "speak: first" not in shown
    assert log.read_text() == "first\nthe last word\n"
    execute(python(PRINT), log)
    assert log.read_text() == "first\nthe last word\n" * 2


def test_a_command_that_fails_names_its_last_word_and_its_log(tmp_path):
    log = tmp_path / "fail.log"
    code = "import sys; sys.exit('fail.py: error: no such file')"
    with pytest.raises(
        UserError, match=rf"^fail failed: no such file \(all of its output: {log}\)"
    ):
        execute(python(code), log)


def test_two_runs_never_execute_one_command_at_the_same_time(tmp_path):
    log = tmp_path / "busy.log"
    lock = take_lock(log.with_suffix(".lock"), log)
    with pytest.raises(UserError, match="another run is at work in"):
        execute(python(PRINT), log)
    os.close(lock)
    execute(python(PRINT), log)


def counted(tmp_path, inputs, text="a", *, resumes=False):
    """A step that adds a letter to its output and to a count of its runs."""
    code = f"[open(p, 'a').write({text!r}) for p in ('{tmp_path}/out.txt', '{tmp_path}/runs')]"
    outputs = [tmp_path / "out.txt"]
    run([step(python(code), "count", tmp_path, outputs, inputs=inputs, resumes=resumes)], tmp_path)
    return (tmp_path / "out.txt").read_text(), (tmp_path / "runs").read_text()


def test_a_step_runs_again_where_its_command_or_the_contents_of_its_inputs_change(tmp_path):
    source = tmp_path / "source"
    source.write_text("one")
    assert counted(tmp_path, [source]) == ("a", "a")
    source.touch()
    assert counted(tmp_path, [source]) == ("a", "a")
    source.write_text("two")
    # what an earlier run left is removed first
    assert counted(tmp_path, [source]) == ("a", "aa")
    assert counted(tmp_path, [source], "b") == ("b", "aab")
    assert counted(tmp_path, [source], "c", resumes=True) == ("bc", "aabc")
    (tmp_path / "out.txt").unlink()
    assert counted(tmp_path, [source], "c") == ("c", "aabcc")


def test_checkpoints_without_a_note_are_refused_and_no_training_counts_as_diverged(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "checkpoint_last.pt").touch()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train_m.log").write_text("FloatingPointError: gradients are Nan/Inf\n")
    run = SimpleNamespace(out=tmp_path, train=lambda model: ["fairseq-train"], threads=1)
    with pytest.raises(UserError, match="holds a training by another command"):
        translation.train(run, SimpleNamespace(name="m"), tmp_path, SimpleNamespace(settings={}))
