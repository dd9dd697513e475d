"""Trainings write what the tools that watch them read."""

import pytest

from tests.startup.conftest import TINY

pytestmark = pytest.mark.slow


def test_tensorboard_has_the_losses(run, work, data):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    logs = ["--tensorboard-logdir=tensorboard-logs", "--log-interval=1"]
    run("fairseq-train", data, *TINY, *logs, "--max-epoch=1", "--save-dir=watched", cwd=work)
    for folder, tag in (("train_inner", "loss"), ("valid", "ppl")):
        found = events.EventAccumulator(str(work / "tensorboard-logs" / folder)).Reload()
        assert tag in found.Tags()["scalars"]
        assert all(event.value > 0 for event in found.Scalars(tag))


def test_wandb_keeps_a_run_offline(run, work, data):
    pytest.importorskip("wandb")
    told = ["--wandb-project=watched", "--max-epoch=1", "--save-dir=watched-too"]
    run("fairseq-train", data, *TINY, *told, cwd=work, WANDB_MODE="offline")
    assert list((work / "wandb").glob("offline-run-*/run-*.wandb"))
