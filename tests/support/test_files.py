import errno
import json
import math
import os
import subprocess
import sys

import pytest

from hyptrans.support import files
from hyptrans.support.errors import UserError
from hyptrans.support.files import (
    one_at_a_time,
    read_bytes,
    read_json,
    sha256,
    short_names,
    take_lock,
    whole_file,
    write_json,
    write_whole,
)


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new folder" / "file"
    with whole_file(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_preserves_the_old_file(tmp_path, error):
    path = tmp_path / "file"
    write_whole(path, "old")

    def write_and_stop():
        with whole_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_and_stop()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_by_one_process_at_a_time(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as file:
        file.write(b"first")
        with pytest.raises(UserError, match=r"another run is at work in .*file; wait for it"):
            write_whole(path, "second")
        file.write(b" and whole")
    assert path.read_bytes() == b"first and whole"


def test_nothing_is_written_through_a_link(tmp_path):
    mine, partial = tmp_path / "mine", tmp_path / "file.partial"
    mine.write_text("years")
    partial.symlink_to(mine)
    with pytest.raises(UserError, match=r"file\.partial is a link, and files are never"):
        write_whole(tmp_path / "file", "new")
    assert mine.read_text() == "years"
    partial.unlink()
    partial.symlink_to(tmp_path / "not there")
    with pytest.raises(UserError, match="is a link"):
        take_lock(partial, tmp_path)
    assert not (tmp_path / "not there").exists()


def test_writing_works_on_a_file_system_without_locks(tmp_path, monkeypatch):
    def no_locks(descriptor, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    with one_at_a_time(tmp_path):
        write_whole(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"


def test_a_waiting_process_does_not_rewrite_a_finished_file(tmp_path, monkeypatch):
    path, partial = tmp_path / "file", tmp_path / "file.partial"
    partial.write_text("of the other")
    stock = files.fcntl.flock

    def rename_and_lock(descriptor, kind):
        if partial.read_text():
            partial.rename(path)  # the other is done between our opening and our locking
        stock(descriptor, kind)

    monkeypatch.setattr(files.fcntl, "flock", rename_and_lock)
    os.close(take_lock(partial, path))
    assert (path.read_text(), partial.read_text()) == ("of the other", "")


def test_a_lock_waits_for_another_process(tmp_path):
    code = """
import sys
from pathlib import Path
from hyptrans.support.files import one_at_a_time
counter = Path(sys.argv[1]) / "counter"
for _ in range(200):
    with one_at_a_time(counter.parent):
        counter.write_text(str(int(counter.read_text()) + 1))
"""
    (tmp_path / "counter").write_text("0")
    run = [sys.executable, "-c", code, str(tmp_path)]
    for process in [subprocess.Popen(run) for _ in range(3)]:
        assert process.wait() == 0
    assert (tmp_path / "counter").read_text() == "600"


def test_json_has_null_for_nan_and_escapes_for_odd_names(tmp_path):
    name = os.fsdecode(b"tr\xe9.en")  # not UTF-8
    values = {"nan": math.nan, "deep": [{"inf": math.inf}, (1.5, -math.inf)], "ä": name}
    write_json(tmp_path / "file", values)
    text = (tmp_path / "file").read_text(encoding="utf-8")
    assert json.loads(text) == {"nan": None, "deep": [{"inf": None}, [1.5, None]], "ä": name}
    assert '"ä"' in text
    assert text.endswith("}\n")


def test_hash_of_a_folder_depends_only_on_names_and_contents(tmp_path):
    for folder, names in {"a": "xy", "b": "yx", "c": "xz"}.items():
        for name in names:
            write_whole(tmp_path / folder / "in" / name, "y" if name == "z" else name)
    assert sha256(tmp_path / "a") == sha256(tmp_path / "b") != sha256(tmp_path / "c")
    write_whole(tmp_path / "b" / "in" / "x", "other")
    assert sha256(tmp_path / "a") != sha256(tmp_path / "b")


@pytest.mark.parametrize(
    ("paths", "wanted"),
    [
        ([], []),
        (["/x/train.en", "y/train.de"], ["train.en", "train.de"]),
        (["/x/news/a", "/x/talks/a", "b"], ["news/a", "talks/a", "b"]),
        (["/x/news/a", "x/news/a"], ["/x/news/a", "x/news/a"]),
    ],
)
def test_short_names_of_paths_are_unique(paths, wanted):
    assert [*short_names(paths).values()] == wanted


def test_reader_stops_at_the_byte_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(ValueError, match="4"):
        read_bytes(path, 4)
    with pytest.raises(ValueError, match="it is not a regular file"):
        read_bytes(tmp_path, 5)
    with pytest.raises(ValueError, match="it does not exist"):
        read_bytes(tmp_path / "missing", 5)


@pytest.mark.parametrize("text", ["[" * 100_000, "[1]", "nope", "1"])
def test_json_that_is_not_an_object_is_refused(text):
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        read_json(text)
