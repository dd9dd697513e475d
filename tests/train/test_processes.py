import sys

import pytest
import torch
from safetensors.torch import load_file

from tests import programs
from tests.train.test_train import refused, words

WHOLE = ["--precision", "float64", "--dropout", "0"]


@pytest.mark.slow
def test_two_torchrun_processes_match_two_accumulated_batches(data, tmp_path):
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    ends = []
    for name, before, accumulated in (("one", [], "2"), ("two", launch, "1")):
        given = [*words(data, tmp_path / name, *WHOLE), "--update-freq", accumulated]
        programs.run(sys.executable, *before, "-m", "hyptrans", *given, timeout=300)
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
    assert sentence in refused(words(data, tmp_path / "out", "--fsdp", "full_shard", *more))
    assert not (tmp_path / "out" / "run.yaml").exists()
