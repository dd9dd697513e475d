import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hyptrans.support.errors import UserError
from hyptrans.support.records import Record, Steps, digest, recorded

ROOT = Path(__file__).parents[2]
# Makes a step from other settings over and over: the k-th time, the process that makes it kills
# itself before it opens, removes or renames its k-th file.
DRIVER = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from hyptrans.support.records import Record

    folder, resumes = Path(sys.argv[1]), sys.argv[2] == "True"
    out = folder / "out"

    def record(setting):
        return Record(folder / "logs" / "record.done", {"setting": setting}, [out])

    def make(setting):
        def run():
            if resumes and out.exists():
                assert setting.startswith(out.read_text()), (setting, out.read_text())
            out.write_text(setting[:1])
            out.write_text(setting)
        record(setting).make(run, clear=lambda: out.unlink(missing_ok=True), resumes=resumes)

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
            make("new")
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    number, killed = 0, True
    while killed:
        number += 1
        make("old")
        killed = killed_at(number)
        for setting in ("old", "new"):
            taken = record(setting).earlier() is not None
            assert not taken or out.read_text() == setting, (number, setting)
        make("new")
    assert record("new").earlier()
    print(number)
    """
)


class Step:
    """A step that writes one file, and how often it did."""

    def __init__(self, folder, **more):
        self.folder, self.more, self.runs = folder, more, 0
        folder.mkdir(exist_ok=True)

    @property
    def record(self):
        return self.folder / "logs" / "step.json"

    def run(self):
        self.runs += 1
        (self.folder / "out").write_text("text")
        return {"lines": self.runs}

    def once(self, **settings):
        record = Record(self.record, settings, [self.folder / "out"], **self.more)
        return record.earlier() or record.make(self.run)


def test_a_finished_step_is_found_with_what_it_noted(tmp_path):
    step = Step(tmp_path)
    first = step.once(size=3, files=(Path("a"), Path("b")))
    assert first.notes == {"lines": 1}
    assert step.once(size=3, files=(Path("a"), Path("b"))) == first
    assert recorded(step.record) == first
    assert step.runs == 1


def test_a_step_is_run_again_for_other_settings_and_has_another_id(tmp_path):
    step = Step(tmp_path, unique=True)
    ids = [step.once(size=size).id for size in (3, 4, 3)]
    assert len(set(ids)) == step.runs == 3


def test_a_step_is_run_again_when_an_output_is_gone(tmp_path):
    step = Step(tmp_path)
    step.once()
    (tmp_path / "out").unlink()
    assert step.once().notes == {"lines": 2}


def test_a_step_that_left_nothing_does_not_count_as_finished(tmp_path):
    record = Record(tmp_path / "record", {}, [tmp_path / "out"])
    with pytest.raises(FileNotFoundError):
        record.make(lambda: None)
    assert record.earlier() is None


@pytest.mark.parametrize("checked", [False, True])
def test_an_output_with_other_contents_is_noticed_where_it_is_checked(tmp_path, checked):
    step = Step(tmp_path, checked=checked)
    step.once()
    (tmp_path / "out").write_text("changed behind its back")
    step.once()
    assert step.runs == 1 + checked


def test_a_step_is_the_same_to_what_follows_where_its_outputs_are(tmp_path):
    step = Step(tmp_path)
    ids = [step.once(size=size).id for size in (3, 4)]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("resumes", "changed", "overwrite", "left"),
    [
        (True, False, False, "half, whole"),
        (True, True, False, "whole"),
        (True, False, True, "whole"),
        (False, False, False, "whole"),
    ],
)
def test_a_stopped_step_goes_on_from_its_own_and_from_nothing_else(
    tmp_path, resumes, changed, overwrite, left
):
    out = tmp_path / "out"

    def make(text, setting, *, overwrite=False, fails=False):
        def run():
            with open(out, "a") as file:
                file.write(text)
            if fails:
                raise KeyboardInterrupt

        record = Record(tmp_path / "step.done", {"setting": setting}, [out], overwrite=overwrite)
        return record.make(run, clear=lambda: out.unlink(missing_ok=True), resumes=resumes)

    with pytest.raises(KeyboardInterrupt):
        make("half, ", "old", fails=True)
    done = make("whole", "new" if changed else "old", overwrite=overwrite)
    assert out.read_text() == left
    # nobody knows how long the first part took
    assert (done.seconds is None) == (left != "whole")
    assert recorded(tmp_path / "step.done") == done


def write(path, text):
    path.write_text(text)
    return path


def test_steps_of_a_folder_count_their_inputs_by_contents_and_place(tmp_path):
    runs = []

    def once(out, *inputs, **settings):
        (out / "made").mkdir(parents=True, exist_ok=True)
        steps = Steps(out, out / "records", checked=True)
        made = out / "made" / "file"

        def make():
            runs.append(settings)
            return {"text": write(made, "".join(path.read_text() for path in inputs))}

        done = steps.once(
            "join", lambda: {"length": len(make()["text"].read_text())},
            settings=settings, inputs=inputs, outputs=[made],
        )  # fmt: skip
        assert steps.notes == {"join": done.notes}
        assert steps.seconds.keys() == {"join"}
        return done.notes["length"]

    out = tmp_path / "out"
    out.mkdir()
    one, other = write(out / "one", "a"), write(tmp_path / "other", "bc")
    assert [once(out, one, other) for _ in range(2)] == [3, 3]
    assert len(runs) == 1
    # moved as a whole, the folder is the same
    out.rename(tmp_path / "moved")
    assert once(tmp_path / "moved", tmp_path / "moved" / "one", other) == 3
    assert len(runs) == 1
    write(other, "bcd")
    assert once(tmp_path / "moved", tmp_path / "moved" / "one", other) == 4
    assert once(tmp_path / "moved", other, tmp_path / "moved" / "one") == 4
    assert once(tmp_path / "moved", other, tmp_path / "moved" / "one", how="anew") == 4
    assert len(runs) == 4
    with pytest.raises(UserError, match="nowhere does not exist"):
        once(tmp_path / "moved", tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"id": 1, "notes": []}'])
def test_a_damaged_record_is_no_record(tmp_path, content):
    step = Step(tmp_path)
    step.once()
    step.record.write_bytes(content)
    assert recorded(step.record) is None
    step.once()
    assert step.runs == 2
    assert recorded(step.record)


def test_a_step_that_fails_leaves_no_record(tmp_path):
    step = Step(tmp_path)
    step.once()

    def fails():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Record(step.record, {}, [tmp_path / "out"]).make(fails)
    assert recorded(step.record) is None
    step.once()
    assert step.runs == 2


@pytest.mark.parametrize("resumes", [False, True])
def test_a_kill_at_any_file_never_has_an_old_output_taken_for_a_new_one(tmp_path, resumes):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, tmp_path, str(resumes)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


def test_a_digest_is_of_the_contents_not_of_their_order():
    assert digest({"a": 1, "b": (2, Path("c"))}) == digest({"b": [2, "c"], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
