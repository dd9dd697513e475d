import hashlib
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hyptrans.support.steps import Record, digest, recorded

ROOT = Path(__file__).parents[2]
# Makes a step from other settings over and over: the k-th time, the process that makes it kills
# itself before it opens, removes or renames its k-th file.
DRIVER = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from hyptrans.support.steps import Record

    folder = Path(sys.argv[1])
    out = folder / "out"

    def record(setting):
        return Record(folder / "logs" / "record", {"setting": setting}, [out])

    def make(setting):
        def run():
            out.write_text("half")
            out.write_text(setting)
        record(setting).make(run)

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
    step = Step(tmp_path)
    ids = [step.once(size=size).id for size in (3, 4, 3)]
    assert len(set(ids)) == step.runs == 3


def test_a_step_is_run_again_when_an_output_is_gone(tmp_path):
    step = Step(tmp_path)
    step.once()
    (tmp_path / "out").unlink()
    assert step.once().notes == {"lines": 2}


def test_a_step_that_left_nothing_does_not_count_as_finished(tmp_path):
    record = Record(tmp_path / "record", {}, [tmp_path / "out"])
    record.make(lambda: None)
    assert record.earlier() is None


@pytest.mark.parametrize("by_contents", [False, True])
def test_an_output_with_other_contents_is_noticed_where_the_mark_says_so(tmp_path, by_contents):
    def mark(path):
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest()

    step = Step(tmp_path, **({"mark": mark} if by_contents else {}))
    step.once()
    (tmp_path / "out").write_text("changed behind its back")
    step.once()
    assert step.runs == 1 + by_contents


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"id": 1, "notes": []}'])
def test_a_damaged_record_is_no_record(tmp_path, content):
    step = Step(tmp_path)
    step.once()
    step.record.write_bytes(content)
    assert recorded(step.record) is None
    step.once()
    assert step.runs == 2
    assert recorded(step.record)


def test_a_record_cut_short_anywhere_is_no_record(tmp_path):
    step = Step(tmp_path)
    step.once()
    whole = step.record.read_bytes()
    for length in range(len(whole) - 1):
        step.record.write_bytes(whole[:length])
        assert recorded(step.record) is None


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


def test_a_folder_moved_with_its_records_keeps_what_is_finished(tmp_path):
    Step(tmp_path / "here").once(size=3)
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = Step(tmp_path / "there")
    assert moved.once(size=3).notes == {"lines": 1}
    assert moved.runs == 0


def test_a_kill_at_any_file_never_has_an_old_output_taken_for_a_new_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, tmp_path],
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
