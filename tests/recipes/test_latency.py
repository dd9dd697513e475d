"""The table of CPU time per token."""

import subprocess
import sys

import pytest

from hyptrans.support.errors import UserError
from recipes.benchmark import latency


def test_what_a_model_takes_stands_beside_its_twin_and_what_it_took_before():
    ways = dict.fromkeys(latency.WAYS, 2e-6)
    now = {latency.TWIN: ways, "hybonet": dict.fromkeys(latency.WAYS, 3e-6)}
    found = {"now": {"device": "a CPU", "versions": {"torch": "2"}, "seconds": now}}
    found["before"] = {**found["now"], "seconds": {latency.CTRANSLATE2: ways}}
    shown = latency.table(found)
    assert "| hybonet | 3 (1.50) | 3 (1.50) | 3 (1.50) | 3 (1.50) |" in shown
    assert "| CTranslate2, before | 2 | 2 | 2 | 2 |" in shown
    assert shown.endswith("a CPU, 1 thread; torch 2")


def test_every_model_makes_as_many_tokens(tmp_path):
    for arch in (latency.TWIN, "hybonet"):
        latency.made(arch, tmp_path / arch)
        translate = latency.ours(tmp_path / arch)
        for beam in (1, 2):
            assert translate([[4, 5, 6, 2], [7, 2]], beam) == latency.MADE


@pytest.mark.slow
def test_the_command_prints_a_row_of_each_model():
    command = [sys.executable, "-m", "recipes.benchmark.latency", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--sentences", "2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(f"| {name} |" in done.stdout for name in (*latency.OURS, latency.MARIAN))


@pytest.mark.parametrize("text", ["", "[]", "{}", "nope"])
def test_another_file_is_refused_before_anything_is_measured(text, tmp_path, monkeypatch):
    (tmp_path / "old.json").write_text(text)
    monkeypatch.setattr(latency, "measure", None)
    with pytest.raises(UserError, match=r"--before .*old.json is not what --json wrote"):
        latency.main(["--before", str(tmp_path / "old.json")])
    with pytest.raises(FileNotFoundError):
        latency.main(["--before", str(tmp_path / "none.json")])
