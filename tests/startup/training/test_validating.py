"""What a validation needs is asked before the first update, and it never costs an epoch."""

import fcntl
import os
import re

import pytest
import torch

from tests.startup.conftest import TINY


@pytest.fixture
def train(work, data, fork, tmp_path):
    """Train in a folder of the test's own; returns the finished process."""

    def train(*flags, check=True):
        return fork(
            "fairseq-train", data, *TINY, f"--save-dir={tmp_path}", *flags, cwd=work, check=check
        )

    return train


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--best-checkpoint-metric=bleu"], "needs --eval-bleu"),
        (["--best-checkpoint-metric=los"], "is nothing that --criterion cross_entropy measures"),
        (["--encoder-layers=0"], "--encoder-layers must be at least 1, got 0"),
        (["--decoder-attention-heads=0"], "--decoder-attention-heads must be at least 1, got 0"),
        (["--valid-subset=nope"], "has no set 'nope'"),
        (["--max-source-positions=5"], "skip-invalid-size-inputs-valid-test"),
    ],
)
def test_it_is_refused_before_the_first_update(flags, told, train, tmp_path):
    done = train(*flags, "--max-epoch=1", check=False)
    assert done.returncode != 0
    assert told in done.stderr.strip().splitlines()[-1]
    assert "Start iterating" not in done.stdout + done.stderr
    assert list(tmp_path.glob("*.pt")) == []


def test_a_training_that_never_begins_leaves_no_folder(train, tmp_path):
    made = tmp_path / "never"
    words = [f"--save-dir={made}", "--max-epoch=1"]
    assert train(*words, "--valid-subset=nope", check=False).returncode != 0
    assert not made.exists()
    # one that was there stays
    made.mkdir()
    assert train(*words, "--valid-subset=nope", check=False).returncode != 0
    assert made.is_dir()


def test_a_validation_that_fails_keeps_the_weights(train, tmp_path):
    """A criterion that nothing is known of, and a metric that it does not measure."""
    flags = ["--criterion=legacy_masked_lm_loss", "--best-checkpoint-metric=nope"]
    flags = ["--criterion=composite_loss", "--underlying-criterion=cross_entropy", *flags[1:]]
    done = train(*flags, "--max-epoch=1", check=False)
    assert done.returncode != 0
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert state["optimizer_history"][-1]["num_updates"] > 0


def test_a_folder_that_another_training_writes_to_is_refused(train, tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        done = train("--max-epoch=1", check=False)
    finally:
        os.close(descriptor)
    assert f"another training writes to --save-dir {tmp_path}" in done.stderr
    assert train("--max-epoch=1").returncode == 0


def test_patience_is_counted_over_a_resume(train):
    """A rate of zero gains nothing: three validations without a gain end it, in two runs."""
    flags = ["--lr=0", "--patience=3", "--log-format=simple"]
    train(*flags, "--max-epoch=3")
    done = train(*flags, "--max-epoch=9")
    epochs = re.findall(r"epoch (\d+) \| valid on", done.stdout + done.stderr)
    assert "hasn't improved for last 3 runs" in done.stdout + done.stderr
    assert epochs == ["004"]
