import socket

import pytest
import torch

from tests.models.test_commands import OPTIMIZER, PAIRS, SIZES, data, train
from tests.programs import ROOT, SCRIPTS, run

__all__ = ["data"]  # a fixture


def parameters(folder):
    return torch.load(folder / "checkpoint_last.pt", weights_only=False)["model"]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.slow
def test_two_processes_train_like_one_that_accumulates_their_batches(data, tmp_path):
    train(data, tmp_path / "one", *OPTIMIZER, "--update-freq", 2, "--cpu", updates=6)
    # stopped after a few updates: all of them go on from what the first one reads
    for updates in (4, 6):
        train_two(data, tmp_path / "two", updates)
    one, two = parameters(tmp_path / "one"), parameters(tmp_path / "two")
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-4, atol=1e-5, msg=name)


def train_two(data, folder, updates):
    """By the lines of docs/gpus.md."""
    command = [SCRIPTS / "torchrun", "--nproc_per_node", 2, "--master_port", free_port()]
    command += [SCRIPTS / "fairseq-train", data, *PAIRS, "--arch", "hybonet_tiny", *SIZES]
    command += [*OPTIMIZER, "--criterion", "label_smoothed_cross_entropy", "--max-tokens", 600]
    command += ["--max-update", updates, "--seed", 1, "--save-dir", folder, "--cpu"]
    command += ["--no-epoch-checkpoints", "--validate-interval", 1000, "--num-workers", 0]
    command += ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    done = run(*command, cwd=ROOT)
    assert f"num_updates {updates}" in done.stdout + done.stderr
