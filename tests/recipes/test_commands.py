"""Commands of recipes: how they are recorded, what a log keeps, and who may run one."""

import os

import pytest

from hyptrans.support.errors import UserError
from hyptrans.support.files import take_lock
from hyptrans.support.steps import Step, run
from recipes.common import translation
from recipes.common.commands import execute, portable
from recipes.common.translation import Run, step


def python(code):
    return ["python", "-c", code]


def test_recorded_commands_omit_local_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HYPTRANS_DATA", str(tmp_path / "corpora"))
    out, home = tmp_path / "out", tmp_path / "home"
    words = ["fairseq-train", out / "data", f"--x={home}/data", "--save-dir", out, home / "a.pt"]
    words += [tmp_path / "corpora" / "b.gz", f"{out}er", "--lr", "0.5", "/", ""]
    assert portable([*map(str, words)], out).replace("'", "").split() == [
        *("fairseq-train", "OUT/data", "--x=~/data", "--save-dir", "OUT", "~/a.pt"),
        *("$HYPTRANS_DATA/b.gz", f"{out}er", "--lr", "0.5", "/"),
    ]


def test_perplexities_are_shown_and_the_log_keeps_all_output(tmp_path, capsys):
    log = tmp_path / "logs" / "speak.log"
    said = "| valid | epoch 001 | loss 5 | ppl 20.5 | num_updates 300\n"
    for runs in (1, 2):
        execute(python(f"print('first'); print({said.strip()!r})"), log)
        shown = capsys.readouterr().out
        assert "speak: update 300, valid perplexity 20.5" in shown
        assert "\nfirst" not in shown
        assert log.read_text() == f"first\n{said}" * runs


def test_error_of_a_failed_command_quotes_its_last_line_and_names_its_log(tmp_path):
    log = tmp_path / "fail.log"
    code = "import sys; sys.exit('fail.py: error: no such file')"
    message = rf"^fail failed: no such file \(all of its output: {log}\)"
    with pytest.raises(UserError, match=message):
        execute(python(code), log)


def test_two_runs_never_execute_one_command_at_the_same_time(tmp_path):
    log = tmp_path / "busy.log"
    lock = take_lock(log.with_suffix(".lock"), log)
    with pytest.raises(UserError, match="another run is at work in"):
        execute(python("print()"), log)
    os.close(lock)
    execute(python("print()"), log)


def counted(tmp_path, inputs, text="a", *, resumes=False):
    """A step that adds a letter to its output and to a count of its runs."""
    code = f"[open(p, 'a').write({text!r}) for p in ('{tmp_path}/out.txt', '{tmp_path}/runs')]"
    output = tmp_path / "out.txt"
    run([step(python(code), "count", tmp_path, output, inputs=inputs, resumes=resumes)], tmp_path)
    return (tmp_path / "out.txt").read_text(), (tmp_path / "runs").read_text()


def test_a_step_reruns_if_its_command_or_inputs_change(tmp_path):
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


def test_checkpoints_without_a_recorded_command_are_refused(tmp_path):
    training = Run(tmp_path, "m", {"--arch": "hybonet_tiny"}, ("en", "de"), 1, 10)
    training.folder.mkdir()
    (training.folder / "checkpoint_last.pt").touch()
    training.log("train").parent.mkdir()
    training.log("train").write_text("FloatingPointError: gradients are Nan/Inf\n")
    with pytest.raises(UserError, match="holds a training by another command"):
        translation.train(training, Step("data", [], lambda: None))
