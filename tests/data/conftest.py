import gzip
import json
import random
import re

import pytest

from hyptrans.data.commands.cli import PROGRAM
from hyptrans.data.dictionary import EOS, SPECIAL
from hyptrans.data.indexed import IndexedSet
from tests.real_data import real_data


@pytest.fixture
def data():
    """The folder of real data sets."""
    return real_data()


@pytest.fixture
def run(capsys):
    """Run a command in this process: returns exit status, stdout and stderr."""

    def call(name, *words):
        try:
            status = PROGRAM.run([name, *map(str, words)])
        except SystemExit as exit:
            # of argparse
            status = exit.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def prepare(run):
    """Run ``hyptrans prepare text``, which must succeed; returns what it prints."""

    def prepare(*words):
        status, out, err = run("text", *words)
        assert status == 0, err
        return out

    return prepare


def error_of(result):
    """The one sentence of a refused command."""
    status, _, err = result
    lines = re.findall(r"^(?:hyptrans prepare \w+: )?(error: .*)", err, re.MULTILINE)
    assert status == 2, result
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


def encoded(out, name, lang):
    """The lines of a binarized set in subwords, as its numbers and the dictionary give them."""
    (index,) = (out / "data-bin").glob(f"{name}.*.{lang}.idx")
    symbols = [*SPECIAL, *symbols_of(out, lang)]
    found = IndexedSet(index.with_suffix(""))
    lines = [found[i].tolist() for i in range(len(found))]
    assert all(line[-1] == EOS for line in lines)
    return [" ".join(symbols[number] for number in line[:-1]) for line in lines]


def symbols_of(out, lang):
    """The symbols of a dictionary's file."""
    text = (out / f"data-bin/dict.{lang}.txt").read_text(encoding="utf-8")
    return [line.rpartition(" ")[0] for line in text.split("\n")[:-1]]


def make_sentences(count, lang, seed=0):
    """Distinct lines of made-up words, the same for the same arguments."""
    rng = random.Random(f"{lang}{seed}")
    syllables = [c + v for c in "bdgklmnprst" for v in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(300)]
    lines = []
    for number in range(count):
        chosen = rng.choices(words, weights=range(300, 0, -1), k=rng.randint(4, 9))
        lines.append(" ".join(chosen).capitalize() + f", {number} - {lang}'s.")
    return lines


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(line + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def pair(prefix, english, german=None):
    """The files of a set of sentence pairs; without German, of the same lines on both sides."""
    sides = {"en": english, "de": english if german is None else german}
    return [write(prefix.with_suffix(f".{lang}"), lines) for lang, lines in sides.items()]


def every_set(files, names=("train", "valid", "test")):
    """The options that name the same files for several sets."""
    return [word for name in names for word in (f"--{name}", *files)]


@pytest.fixture
def corpus(tmp_path):
    """Options of ``hyptrans prepare text`` for a small generated corpus."""

    def make(train=200, valid=20, test=20, folder="input"):
        words = []
        for seed, (name, size) in enumerate((("train", train), ("valid", valid), ("test", test))):
            english, german = (make_sentences(size, lang, seed) for lang in ("en", "de"))
            words += [f"--{name}", *pair(tmp_path / folder / name, english, german)]
        return words

    return make


def tree(folder):
    """Every file of a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def manifest_of(out):
    """What a finished folder says of itself; its steps by name."""
    found = json.loads((out / "manifest.json").read_text())
    return found | {"steps": {step["name"]: step for step in found["steps"]}}
