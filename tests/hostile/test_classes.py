"""No hostile file of any class runs code, takes memory or time, or shows a traceback."""

import re

import pytest

from hyptrans.support.errors import UserError
from tests.forks import ROOT
from tests.hostile import running
from tests.hostile.__main__ import run
from tests.hostile.classes import CLASSES
from tests.hostile.running import RAN, Hostile, attempt, fallen, table

SEED = 20261122
"""So that this test speaks of the code and not of luck; `make test-hostile` draws anew."""


@pytest.mark.slow
def test_every_hostile_file_is_held(tmp_path, capsys, monkeypatch):
    # other tests run beside this one, and computing costs more; `make test-hostile` runs alone
    monkeypatch.setattr(running, "MOST_SECONDS", 2 * running.MOST_SECONDS)
    outcomes = run(SEED, tmp_path)
    shown = table(outcomes)
    with capsys.disabled():
        print(f"\n{shown}")  # noqa: T201
    assert list(fallen(outcomes)) == []
    # as many of each class as are spoken of
    assert shown in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_each_promise_is_tried_by_what_there_is():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\|([^|\n]+)\|([^|\n]+)\|$", text.partition("| tried by |")[2], re.MULTILINE
    )
    named = set()
    for promise, tries in rows[1:]:
        found = set(re.findall("`(.+?)`", tries))
        assert found or tries.strip() == "every class", promise
        named |= found
    tests = {name for name in named if name.startswith("tests/")}
    for name in tests:
        path, _, test = name.partition("::")
        assert (
            f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
            if test
            else (ROOT / path).is_file()
        )
    # a class that stands for no promise would be one that nobody made
    assert named - tests == CLASSES.keys() - {"checkpoint: loaded and averaged"}


def touch():
    open(RAN, "w").close()


def traceback():
    raise KeyError("x")


def memory():
    return b"x" * (600 << 20)


def seconds():
    import time

    start = time.process_time()
    while time.process_time() < start + 2.5:
        pass


def leave():
    open("stray", "w").close()
    raise UserError("refused")


def nameless():
    raise UserError("a file is refused")


def several():
    raise UserError("refused is\nfile.txt")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (nameless, "it is not one sentence that names the file"),
        (several, "it is not one sentence that names the file"),
        (touch, "it ran code"),
        (traceback, "KeyError"),
        (memory, "MB"),
        pytest.param(seconds, "2.5", marks=pytest.mark.slow),
        (leave, "it left stray behind"),
    ],
)
def test_what_must_not_happen_counts_as_fallen(use, words, tmp_path):
    (tmp_path / "file.txt").touch()
    outcome = attempt(Hostile("x", use), tmp_path)
    assert not outcome.held
    assert words in outcome.words
