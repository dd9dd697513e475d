"""Several processes train as one, and what FSDP would cut to pieces is refused."""

import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from tests.train.test_train import run, words

WHOLE = ["--precision", "float64", "--dropout", "0"]


@pytest.mark.slow
def test_two_torchrun_processes_match_two_accumulated_batches(data, tmp_path):
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    ends = []
    for name, before, accumulated in (("one", [], "2"), ("two", launch, "1")):
        given = [*words(data, tmp_path / name, *WHOLE), "--update-freq", accumulated]
        command = [sys.executable, *before, "-m", "hyptrans", *given]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        ends.append(load_file(tmp_path / name / "checkpoint-12" / "model.safetensors"))
    one, two = ends
    assert one["decoder.embed_tokens.weight"].dtype == torch.float64
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], "--fsdp shards parameters over GPUs"),
        (
            ["--arch", "hybonet_tiny", "--embedding-storage", "manifold"],
            "encoder.embed_tokens.weight, decoder.embed_tokens.weight, "
            "decoder.logits.table.weight are points",
        ),
    ],
    ids=["no GPU", "points"],
)
def test_fsdp_is_refused_for_points_and_without_gpus(more, sentence, data, tmp_path):
    done = run(words(data, tmp_path / "out", "--fsdp", "full_shard", *more))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "out" / "run.yaml").exists()
