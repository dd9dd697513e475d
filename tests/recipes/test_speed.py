"""The table of speed beside the twin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from recipes.benchmark import contenders, speed
from recipes.common import results

SCRIPT = Path(__file__).parents[2] / "recipes" / "benchmark" / "speed.py"


def run(*options):
    return subprocess.run(
        [sys.executable, SCRIPT, *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def test_script_prints_and_writes_the_rows_asked_for(tmp_path):
    out = tmp_path / "speed.json"
    done = run("--rows", "hybonet decode d=64", "--rounds", "1", "--json", str(out))
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    (row,) = found["rows"]
    assert (row["arch"], row["phase"], row["dim"], row["length"]) == ("hybonet", "decode", 64, 32)
    assert 0.1 < row["ratio"] < 10
    assert row["peak_mb"] > 0
    assert f"| hybonet | decode | 64 | 32 | 6+6 | {row['ratio']:.2f} | 0.95 |" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "-1"], "error: at least 1 is needed: --rounds -1"),
        (["--rows", "fast"], "error: --rows 'fast' is in the name of no row"),
        pytest.param(
            ["--device", "cuda"],
            "error: --device cuda: torch finds no CUDA device here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
    ],
)
def test_a_wrong_option_is_one_sentence(options, message):
    done = run(*options)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == message


@pytest.mark.parametrize("training", [True, False])
def test_the_twin_through_fused_attention_computes_what_the_twin_does(training):
    size = contenders.Size(64, 12, layers=2, dropout=0.0)
    twins = [
        contenders.build(name, size, "cpu") for name in (contenders.TWIN, contenders.TWIN_SDPA)
    ]
    source, previous = torch.randint(4, contenders.VOCABULARY, (2, 3, 12))
    lengths = torch.full((3,), 12)
    out = [twin.train(training)(source, lengths, previous)[0] for twin in twins]
    torch.testing.assert_close(*out, rtol=0, atol=1e-4)


def test_the_floor_has_the_matrix_products_of_the_twin():
    size = contenders.Size(64, 12, layers=2)
    twin, floor = (contenders.build(n, size, "cpu") for n in (contenders.TWIN, contenders.FLOOR))
    ours = sum(
        p.numel()
        for n, p in floor.named_parameters()
        if p.dim() == 2 and "embed_positions" not in n
    )
    theirs = sum(
        p.numel()
        for n, p in twin.named_parameters()
        if p.dim() == 2 and "embed_positions" not in n and not results._COPIES.match(n)
    )
    assert ours == theirs


def test_peak_of_memory_sees_what_a_step_takes():
    def step():
        torch.ones(64 * 2**20 // 4)

    assert speed.peak_of(step, "cpu") == pytest.approx(64, abs=8)
