import pytest

from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from hyptrans.support.steps import Step
from tests.programs import ROOT, python

# Makes a step of other settings again and again: the k-th time, the process that makes it kills
# itself before it opens, removes or renames its k-th file.
DRIVER = """
    import os, signal, sys
    from pathlib import Path
    from hyptrans.support import steps

    folder = Path(sys.argv[1])
    out = folder / "out"

    def step(setting):
        # not whole, so that the record alone tells whose it is
        return steps.Step("a", [out], lambda: out.write_text(setting) and None, {"s": setting})

    def killed_at(number):
        left = number
        def count(event, _):
            nonlocal left
            if event in ("open", "os.remove", "os.rename"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        child = os.fork()
        if child == 0:
            sys.addaudithook(count)
            steps.run([step("new")], folder)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    number, killed = 0, True
    while killed:
        number += 1
        steps.run([step("old")], folder)
        killed = killed_at(number)
        for setting in ("old", "new"):
            found = steps.finished(step(setting), folder)
            assert found is None or out.read_text() == setting, (number, setting)
        steps.run([step("new")], folder)
    print(number)
"""


def test_a_killed_step_never_leaves_a_stale_output_marked_as_new(tmp_path):
    assert int(python(DRIVER, tmp_path, cwd=ROOT).stdout) > 4


@pytest.fixture
def counted(tmp_path):
    """A function that makes a step, and the names of the steps that were run."""
    ran = []

    def step(name, **settings):
        out = tmp_path / name

        def work():
            ran.append(name)
            write_whole(out, name)
            return {"size": len(name), "place": out}

        return Step(name, [out], work, settings)

    return step, ran


def test_a_finished_step_is_skipped_and_returns_its_result(tmp_path, counted, capsys):
    step, ran = counted
    notes = [{}, {}]
    for found in notes:
        steps.run([step("a", n=1), step("b")], tmp_path / "run", found)
    assert ran == ["a", "b"]
    assert notes[0] == notes[1] == {n: {"size": 1, "place": f"{tmp_path}/{n}"} for n in "ab"}
    said = capsys.readouterr().err.splitlines()
    assert said == [
        *("[0:00] a", "[0:00] b"),
        *("[0:00] a: done by an earlier run", "[0:00] b: done by an earlier run"),
    ]


@pytest.mark.parametrize("change", ["settings", "output", "damaged record", "other record"])
def test_a_step_reruns_when(tmp_path, counted, change):
    step, ran = counted
    steps.run([step("a", n=1), step("b")], tmp_path)
    record = tmp_path / "steps" / "a.json"
    if change == "output":
        (tmp_path / "a").unlink()
    elif change.endswith("record"):
        record.write_text("[]" if change.startswith("other") else record.read_text()[:-9])
    steps.run([step("a", n=2 if change == "settings" else 1), step("b")], tmp_path)
    assert ran == ["a", "b", "a"]


def test_a_step_without_its_output_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"^b ended without writing .*/none"):
        steps.run([Step("b", [tmp_path / "none"], dict)], tmp_path)
    assert steps.finished(Step("b", [], dict), tmp_path) is None


def test_only_one_run_may_hold_a_folder(tmp_path, counted):
    step, ran = counted

    def second():
        steps.run([step("a")], tmp_path)

    with pytest.raises(UserError, match="another run is at work"):
        steps.run([Step("first", [], second)], tmp_path)
    assert ran == []
    assert steps.is_kept_in(tmp_path)
    assert not steps.is_kept_in(tmp_path / "elsewhere")
