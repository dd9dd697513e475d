"""No hostile file of any class runs code, takes memory or time, or shows a traceback."""

import os
import random
import time
from pathlib import Path

import pytest

from hyptrans.support.errors import UserError
from tests.hostile import dictionaries, folders, running, texts, trees
from tests.hostile.running import RAN, Hostile, attempt

SEED = int(os.environ.get("SEED", 20261122))
"""So that this test speaks of the code and not of luck; ``make test-hostile`` draws anew."""
CLASSES = {
    "model folders": (folders.folders, 40),
    "sizes of model folders": (folders.sizes, 12),
    "dictionaries": (dictionaries.dictionaries, 16),
    "tables in zip files": (texts.tables, 6),
    "gzipped texts": (texts.texts, 22),
    "manifests": (texts.manifests, 20),
    "trees": (trees.trees, 22),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_every_hostile_file_is_handled_safely(name, tmp_path, monkeypatch):
    # other tests run beside this one, and computing costs more
    monkeypatch.setattr(running, "MOST_SECONDS", 2 * running.MOST_SECONDS)
    make, count = CLASSES[name]
    folder = tmp_path / "files"
    folder.mkdir()
    tries = make(random.Random(f"{SEED} {name}"), folder, count)
    assert len(tries) > count
    outcomes = [attempt(hostile, folder) for hostile in tries]
    assert [f"{each.name}: {each.words}" for each in outcomes if not each.held] == []


def raising(error):
    def use():
        raise error

    return use


def seconds():
    start = time.process_time()
    while time.process_time() < start + 2.5:
        pass


def leave():
    open("stray", "w").close()
    raise UserError("refused")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (raising(UserError("a file is refused")), "it is not one sentence that names the file"),
        (raising(UserError("refused is\nfile.txt")), "it is not one sentence that names the file"),
        (lambda: Path(RAN).touch(), "it ran code"),
        (raising(KeyError("x")), "KeyError"),
        (lambda: b"x" * (600 << 20), "MB"),
        pytest.param(seconds, "2.5", marks=pytest.mark.slow),
        (leave, "it left stray behind"),
    ],
)
def test_forbidden_outcomes_count_as_failures(use, words, tmp_path):
    (tmp_path / "file.txt").touch()
    outcome = attempt(Hostile("x", use), tmp_path)
    assert not outcome.held
    assert words in outcome.words
