import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from hyptrans.support.errors import UserError
from recipes.common import experiment, results
from recipes.common.runner import Runner
from recipes.common.steps import Step, portable_command
from recipes.common.translation import Run
from tests.recipes.scripts import ROOT


def writes(name, path, content="x", *, keep=False):
    """A step that appends to a file, so that running twice shows; ``keep``: it may exist before."""
    code = f"open({str(path)!r}, 'a').write({content!r})"
    return Step(name, ["python", "-c", code], [] if keep else [path])


def test_a_finished_step_is_reused_and_says_so(tmp_path, capsys):
    step = writes("one", tmp_path / "out")
    Runner(tmp_path).run(step)
    assert "one: reused" not in capsys.readouterr().out
    again = Runner(tmp_path)
    again.run(step)
    assert "one: reused" in capsys.readouterr().out
    assert (tmp_path / "out").read_text() == "x"
    assert again.commands == [portable_command(step, tmp_path)]
    assert again.seconds.keys() == {"one"}


@pytest.mark.parametrize("change", ["command", "output removed", "overwrite", "stopped before"])
def test_a_step_runs_anew_from_a_clean_place_when(tmp_path, change):
    out = tmp_path / "out"
    Runner(tmp_path).run(writes("one", out))
    if change == "output removed":
        out.unlink()
    if change == "stopped before":
        (tmp_path / "logs" / "one.done").unlink()
    content = "y" if change == "command" else "x"
    Runner(tmp_path, overwrite=change == "overwrite").run(writes("one", out, content))
    assert out.read_text() == content


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_was_not_made_here_is_replaced_only_when_asked_for(overwrite, tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")
    runner = Runner(tmp_path, overwrite=overwrite)
    if overwrite:
        runner.run(writes("one", out))
    else:
        with pytest.raises(UserError, match=r"out was not made here: move it away, or choose"):
            runner.run(writes("one", out))
    assert out.read_text() == ("x" if overwrite else "mine")


@pytest.mark.parametrize("change", ["command", "data", "overwrite", "stopped", "removed"])
def test_a_finished_training_is_replaced_only_when_asked_for(change, tmp_path):
    out, data = tmp_path / "out", tmp_path / "data"
    data.write_text("old")

    def training(content):
        return replace(writes("one", out, content), precious=True, inputs=[data])

    Runner(tmp_path).run(training("x"))
    if change == "data":
        data.write_text("new")
    if change == "stopped":
        (tmp_path / "logs" / "one.done").unlink()
    if change == "removed":
        out.unlink()
    runner = Runner(tmp_path, overwrite=change == "overwrite")
    if change in ("command", "data"):
        with pytest.raises(UserError, match="out is finished, and was made by another command"):
            runner.run(training("x" if change == "data" else "y"))
        assert out.read_text() == "x"
    else:
        runner.run(training("y"))
        assert out.read_text() == "y"


@pytest.mark.parametrize(("overwrite", "found"), [(False, "xx"), (True, "x")])
def test_what_a_command_keeps_for_its_next_run_goes_where_all_is_run_again(
    overwrite, found, tmp_path
):
    work, out = tmp_path / "work", tmp_path / "out"
    append = "import sys; open(sys.argv[1], 'a').write('x'); open(sys.argv[2], 'w')"
    step = Step("one", ["python", "-c", append, str(work), str(out)], [out], work=[work])
    Runner(tmp_path).run(step)
    out.unlink()
    Runner(tmp_path, overwrite=overwrite).run(step)
    assert work.read_text() == found


def test_a_step_runs_anew_when_what_it_reads_has_changed(tmp_path, capsys):
    read = tmp_path / "read"
    command = ["python", "-c", f"print(open({str(read)!r}).read())"]
    step = Step("one", command, [], inputs=[read])
    for text in ("a", "a", "b"):
        read.write_text(text)
        Runner(tmp_path).run(step)
        assert Runner(tmp_path).log(step.name).read_text() == f"{text}\n"
    assert capsys.readouterr().out.count("one: reused") == 1


UNLIKE = "import sys, uuid; open(sys.argv[1], 'w').write(str(uuid.uuid4()))"
"""Writes something else whenever it runs."""


@pytest.mark.parametrize(
    ("first", "anew"),
    [
        ("the same is written", False),
        ("something else is written", True),
        # of which a second one is another, whatever it says
        ("a training", True),
    ],
)
def test_a_step_runs_anew_when_what_it_is_made_of_is_another(first, anew, tmp_path):
    made = tmp_path / "a"
    if first == "something else is written":
        before = Step("first", ["python", "-c", UNLIKE, str(made)], [made])
    else:
        before = replace(writes("first", made), precious=first == "a training")
    second = Step("second", ["python", "-c", "import uuid; print(uuid.uuid4())"], [], [before.name])
    runner = Runner(tmp_path)
    for step in (before, second):
        runner.run(step)
    said = runner.log(second.name).read_text()
    runner.run(second)
    assert runner.log(second.name).read_text() == said
    made.unlink()
    for step in (before, second):
        Runner(tmp_path).run(step)
    assert (runner.log(second.name).read_text() != said) == anew


def test_what_a_step_is_does_not_depend_on_where_or_how_it_runs(tmp_path, monkeypatch, capsys):
    out, data = tmp_path / "out", tmp_path / "data"
    out.mkdir()
    data.mkdir()
    (data / "text").write_text("a")

    def step(text, threads, *options):
        code = "import sys; open(sys.argv[1], 'a').write('x')"
        words = ["python", "-c", code, str(out / "made"), str(text), *options]
        return replace(Step("a", words, [out / "made"], threads=threads, inputs=[text]))

    Runner(out).run(step(data / "text", 1, "--workers", "4"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYPTRANS_DATA", str(data))
    moved = data.rename(tmp_path / "moved")
    Runner(out).run(step(moved / "text", 2, "--cpu", "--keep-intermediate"))
    assert capsys.readouterr().out.count("reused from an earlier run") == 1
    assert (out / "made").read_text() == "x"


def test_finished_trainings_outlive_other_data_that_are_made_in_their_place(tmp_path):
    data, made = tmp_path / "data", tmp_path / "made"

    def steps(content):
        prepared = writes("prepare", data, content)
        return [prepared, replace(writes("train", made), after=[prepared.name], precious=True)]

    for step in steps("one"):
        Runner(tmp_path).run(step)
    other, training = steps("two")
    Runner(tmp_path).run(other)
    with pytest.raises(UserError, match="made is finished, and was made by another command or of"):
        Runner(tmp_path).run(training)
    for step in steps("one"):
        Runner(tmp_path).run(step)
    assert made.read_text() == "x"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        *(
            (
                f"print('a'); raise SystemExit('{said}no such')",
                r"bad failed: no such \(.*/bad\.log\)",
            )
            for said in ("", "error: ", "fairseq-train: error: ")
        ),
        ("", r"bad ended without writing .*never; see .*bad\.log"),
    ],
)
def test_a_failing_command_names_its_last_line_and_log(code, message, tmp_path):
    with pytest.raises(UserError, match=message):
        Runner(tmp_path).run(Step("bad", ["python", "-c", code], [tmp_path / "never"]))
    assert not (tmp_path / "logs" / "bad.done").exists()


def test_chains_keep_their_order_and_run_side_by_side(tmp_path):
    # the first step of each chain ends only after that of the other has begun
    meet = """
import sys, time
from pathlib import Path
own, other = map(Path, sys.argv[1:])
own.touch()
for _ in range(600):
    if other.exists():
        sys.exit()
    time.sleep(0.1)
sys.exit("the other never began")
"""
    begun = [tmp_path / f"begun {n}" for n in range(2)]
    chains = [
        [
            Step(f"meet {n}", ["python", "-c", meet, str(begun[n]), str(begun[1 - n])], []),
            writes(f"write {n}", tmp_path / str(n)),
        ]
        for n in range(2)
    ]
    Runner(tmp_path).chains(chains, jobs=2)
    assert [(tmp_path / str(n)).read_text() for n in range(2)] == ["x", "x"]


def test_one_job_runs_chains_one_after_the_other(tmp_path):
    log = tmp_path / "log"
    chains = [
        [writes(f"{part} {n}", log, f"{part} {n}\n", keep=True) for part in ("begin", "end")]
        for n in range(2)
    ]
    Runner(tmp_path).chains(chains, jobs=1)
    assert log.read_text() == "begin 0\nend 0\nbegin 1\nend 1\n"


def test_lines_are_in_the_log_at_once_and_those_of_progress_are_shown(tmp_path, capsys):
    # what is killed must have left what it said
    code = """
import sys, time
print("update 5\\nnoise", flush=True)
for _ in range(600):
    if "noise" in open(sys.argv[1]).read():
        sys.exit()
    time.sleep(0.1)
sys.exit("the log stayed empty")
"""
    runner = Runner(tmp_path)
    command = ["python", "-c", code, str(runner.log("train"))]
    runner.run(Step("train", command, progress=lambda x: x.strip().upper() if "5" in x else None))
    shown = capsys.readouterr().out
    assert "train: UPDATE 5" in shown
    assert "\nnoise" not in shown
    assert runner.log("train").read_text() == "update 5\nnoise\n"


def appends(name, path, text, *options):
    code = f"import sys; open({str(path)!r}, 'a').write({text!r}); print({text!r})"
    return Step(name, ["python", "-c", code, *options], [path], resumes=True)


@pytest.mark.parametrize("precious", [False, True])
def test_a_step_that_resumes_goes_on_where_it_was_stopped_by_the_same_command(precious, tmp_path):
    made, record = tmp_path / "made", tmp_path / "logs" / "a.done"

    def run(text, *options):
        runner = Runner(tmp_path)
        runner.run(replace(appends("a", made, text, *options), precious=precious))
        return made.read_text(), runner.log("a").read_text(), runner.seconds["a"] is not None

    assert run("x") == ("x", "x\n", True)
    record.unlink()  # as if it had been stopped before its end
    # how long the first part took nobody knows
    assert run("x", "--cpu") == run("x") == ("xx", "x\nx\n", False)
    if not precious:
        assert run("y") == ("y", "y\n", True)


def test_the_process_of_a_killed_run_keeps_a_second_one_out(tmp_path):
    pid = tmp_path / "pid"
    sleeps = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(20)"
    step = ["python", "-c", sleeps]
    run = f"Runner(Path({str(tmp_path)!r})).run(Step('a', {step!r}, []))"
    imports = "from pathlib import Path; from recipes.common.steps import Step"
    imports += "; from recipes.common.runner import Runner"
    runner = subprocess.Popen([sys.executable, "-c", f"{imports}; {run}"], cwd=ROOT)
    while not (pid.exists() and pid.read_text()):
        assert runner.poll() is None
        time.sleep(0.05)
    runner.kill()
    runner.wait()
    try:
        with pytest.raises(UserError, match="another run is at work in"):
            Runner(tmp_path).run(Step("a", step, []))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_preparation_that_is_to_begin_anew_is_told_so_and_loses_nothing_before(tmp_path):
    # what it downloaded once may be nowhere else
    code = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
(folder / ("anew" if "--overwrite" in sys.argv else "archive")).touch()
"""
    data = tmp_path / "data"
    step = Step("prepare", ["python", "-c", code, str(data)], [data], keeps_account=True)
    Runner(tmp_path).run(step)
    Runner(tmp_path, overwrite=True).run(step)
    assert {path.name for path in data.iterdir()} == {"archive", "anew"}


def test_nothing_more_of_a_stopped_chain_begins(tmp_path):
    begun, more = tmp_path / "begun", tmp_path / "more"
    # ends as if all were well where it is asked to stop
    stops = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
    slow = f"import signal, sys, time; {stops}; open({str(begun)!r}, 'w'); time.sleep(60)"
    waits = f"import os, time\nwhile not os.path.exists({str(begun)!r}): time.sleep(0.05)"
    first = Step("slow", ["python", "-c", slow], [])
    bad = Step("bad", ["python", "-c", f"{waits}\nraise SystemExit('broken')"], [])
    with pytest.raises(UserError, match="broken"):
        Runner(tmp_path).chains([[first, writes("more", more)], [bad]], jobs=2)
    assert not more.exists()


def test_results_say_where_their_trainings_ran_however_often_they_are_shown(tmp_path, monkeypatch):
    step = Step("train_a", ["python", "-c", ""], [], threads=2)
    now = results.surroundings()
    then = now | {"commit": "an earlier one", "versions": now["versions"] | {"torch": "1.0"}}
    monkeypatch.setattr(results, "surroundings", lambda: then)
    Runner(tmp_path).run(step)
    monkeypatch.undo()
    again = Runner(tmp_path)
    again.run(step)
    again.run(Step("train_b", ["python", "-c", ""], [], threads=1))
    run = Run(tmp_path, "en", "de", seed=1, updates=None, threads=1, cpu=True)
    found = experiment.conditions(run, again)
    assert found["commit"] == f"an earlier one, {now['commit']}"
    assert found["versions"] == now["versions"] | {"torch": f"1.0, {now['versions']['torch']}"}
    assert (found["cpu_cores"], found["threads"]) == (now["cpu_cores"], "2, 1")
