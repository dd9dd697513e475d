"""What asks a GPU, as far as none is needed: processes of its own, and what becomes of errors."""

import os
import stat

import pytest

from recipes.benchmark import gpu


def upper(name):
    if name == "dies":
        os._exit(3)
    if name == "fails":
        raise ValueError(f"{name}\nin two lines")
    return name.upper()


@pytest.mark.slow
def test_a_part_that_fails_or_dies_is_an_answer_and_ends_no_other():
    parts = {"part": (upper, ())}
    asked = [("part", name) for name in ("a", "dies", "fails", "b")]
    assert {one: answer for _, one, answer in gpu._answers(parts, asked, 2)} == {
        "a": "A",
        "dies": "its process died",
        "fails": "ValueError: fails in two lines",
        "b": "B",
    }


@pytest.mark.parametrize("status", [0, 9])
def test_the_sanitizer_is_believed_only_where_the_check_passed(tmp_path, monkeypatch, status):
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(
        f"#!/bin/sh\necho kernels; echo 0 errors; echo wrong kernel >&2; exit {status}\n"
    )
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert gpu.sanitized("") == (f"failed ({status}): wrong kernel" if status else "0 errors")
