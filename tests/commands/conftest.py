"""The small models of the tests of inference, and a command as it is typed."""

import io
import sys

import pytest

from hyptrans.commands.cli import PROGRAM
from tests.inference.conftest import export, make, make_of, prepared, texts  # noqa: F401


@pytest.fixture
def model(make, tmp_path):  # noqa: F811
    return export(make("hybonet"), tmp_path / "model")


def call(capsys, *words):
    """Run a command here; returns its status, output and last line of errors."""
    capsys.readouterr()
    status = PROGRAM.run([*map(str, words)])
    shown = capsys.readouterr()
    return status, shown.out, (shown.err.splitlines() or [""])[-1]


def refused(capsys, *words):
    """The sentence of a command that is refused here, and prints nothing else."""
    status, out, error = call(capsys, *words)
    assert (status, out, error[:7]) == (2, "", "error: ")
    return error[7:]


def typed(monkeypatch, data):
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
