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


def test_fsdp_is_refused_without_gpus(data, tmp_path):
    done = run(words(data, tmp_path / "out", "--fsdp", "full_shard"))
    assert done.returncode == 2
    assert "--fsdp shards parameters over GPUs" in done.stderr
    assert not (tmp_path / "out" / "run.yaml").exists()


def test_fsdp_names_the_parameters_that_are_points(data, tmp_path):
    own = ["--arch", "hybonet_tiny", "--embedding-storage", "manifold", "--fsdp", "full_shard"]
    done = run(words(data, tmp_path / "out", *own))
    assert done.returncode == 2
    names = "encoder.embed_tokens.weight, decoder.embed_tokens.weight, decoder.logits.table.weight"
    assert f"{names} are points" in done.stderr
