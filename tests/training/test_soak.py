"""Long trainings of HyboNet: values stay finite, points on the manifold, memory constant."""

import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hyptrans.geometry import lorentz
from tests import forks
from tests.programs import SCRIPTS
from tests.startup.conftest import environment

LOG_INTERVAL = 20
MOST_DRIFT = 1e-4
MOST_GROWTH = 0.05
"""From the middle fifth of what is logged to the last one: at first, memory grows with each shape
of a batch that matrix products have not seen."""
FACTOR = 5
"""Of Noam's schedule in the HyboNet paper."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pairs of sentences and their reverse."""
    draw, words = random.Random(0), [f"w{number}" for number in range(60)]
    lines = [draw.choices(words, k=draw.randint(2, 14)) for _ in range(3000)]
    pairs = [(line, line[::-1]) for line in lines]
    return forks.preprocess(tmp_path_factory.mktemp("soak"), {"train": pairs, "valid": pairs})


def trained(data, out, storage, factor, updates, device):
    """Return what a training logs, with its resident memory in KiB."""
    command = [SCRIPTS / "fairseq-train", data, "--user-dir=hyptrans"]
    command += ["--arch=hybonet_tiny", f"--embedding-storage={storage}", f"--save-dir={out}"]
    command += ["--optimizer=riemannian_adam", "--adam-betas=(0.9, 0.98)", "--clip-norm=0.5"]
    command += [f"--lr={factor}", "--lr-scheduler=noam", f"--warmup-updates={updates // 5}"]
    command += [f"--max-update={updates}", "--max-tokens=128", "--num-workers=0", "--seed=1"]
    command += ["--criterion=tiled_label_smoothed_cross_entropy", "--label-smoothing=0.1"]
    command += ["--disable-validation", "--no-epoch-checkpoints", "--log-format=json"]
    command += [f"--log-interval={LOG_INTERVAL}", *(["--cpu"] if device == "cpu" else [])]
    entries = []
    with subprocess.Popen(
        list(map(str, command)),
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout:
            if found := re.search(r"\| train_inner \| (\{.*\})", line):
                status = Path(f"/proc/{process.pid}/status").read_text()
                kib = int(re.search(r"VmRSS:\s+(\d+)", status)[1])
                entries.append({"kib": kib} | json.loads(found[1]))
    assert process.returncode == 0, line
    return entries


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("storage", "factor", "updates"),
    [("manifold", FACTOR, 4000), ("manifold", 4 * FACTOR, 1000), ("space", 4 * FACTOR, 1000)],
)
def test_long_training_keeps_points_on_the_manifold_and_memory_constant(
    data, tmp_path, storage, factor, updates, device
):
    entries = trained(data, tmp_path, storage, factor, updates, device)
    assert len(entries) >= updates // LOG_INTERVAL - 1
    losses = [float(entry["loss"]) for entry in entries]
    # a NaN is in no comparison
    assert all(0 < loss < 100 for loss in losses)
    table = torch.load(tmp_path / "checkpoint_last.pt")["model"]["encoder.embed_tokens.weight"]
    if storage == "manifold":
        assert lorentz.violation(table).max() < MOST_DRIFT
    assert losses[-1] < losses[0]
    fifth = len(entries) // 5
    middle, last = (
        statistics.median(entry["kib"] for entry in part)
        for part in (entries[2 * fifth : 3 * fifth], entries[-fifth:])
    )
    assert last / middle - 1 < MOST_GROWTH
