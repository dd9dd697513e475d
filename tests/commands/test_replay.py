"""``hyptrans replay`` of a crash.pt, and of what is none."""

import math

import numpy as np
import pytest
import torch

from hyptrans_startup.training.divergence import SAMPLES
from tests.commands.conftest import call


def test_replay_of_a_folder_names_the_file(tmp_path, capsys):
    status, _, error = call(capsys, "replay", tmp_path)
    assert status == 2
    assert error.startswith(f"error: {tmp_path} is not a file: name crash.pt")


def test_replay_of_something_else_is_one_sentence(make, tmp_path, capsys):
    state = torch.load(make("transformer", "--optimizer", "adam", "--lr", "0.1"), weights_only=True)
    state["extra_state"][SAMPLES] = ["x"]
    torch.save(state, tmp_path / "crash.pt")
    status, _, error = call(capsys, "replay", tmp_path / "crash.pt", "--device", "cpu")
    assert status == 2
    assert error.startswith(f"error: {tmp_path / 'crash.pt'} holds no batches that can be run (")


@pytest.mark.parametrize("samples", [torch.zeros(3), np.zeros(3), "x", {"a": 1}, []], ids=type)
def test_replay_of_no_list_of_batches_is_one_sentence(samples, make, tmp_path, capsys):
    state = crash_of(make, tmp_path)
    state["extra_state"][SAMPLES] = samples
    torch.save(state, tmp_path / "crash.pt")
    status, _, error = call(capsys, "replay", tmp_path / "crash.pt", "--device", "cpu")
    assert (status, "crash.pt holds no batch: it is no crash.pt of" in error) == (2, True)


NOT_RUN = {
    "no optimizer": ("optimizer", None, "be run (ValueError: optimizer is required!): name a"),
    "another optimizer": ("optimizer", {"_name": "nope"}, "be run (KeyError: 'nope'): name a file"),
    "another criterion": ("criterion", {"_name": "nope"}, "its criterion nope is not known here"),
    "no number": ("num_updates", "x", "be run (ValueError: no number of updates): name a file"),
}


@pytest.mark.parametrize("case", NOT_RUN)
def test_replay_of_what_cannot_be_trained_is_one_sentence(case, make, tmp_path, capsys):
    name, value, reason = NOT_RUN[case]
    state = crash_of(make, tmp_path)
    if name == "num_updates":
        state["optimizer_history"][-1][name] = value
    else:
        state["cfg"][name] = value
    torch.save(state, tmp_path / "crash.pt")
    status, _, error = call(capsys, "replay", tmp_path / "crash.pt", "--device", "cpu")
    assert status == 2
    assert "crash.pt" in error
    assert reason in error


def crash_of(make, tmp_path):
    """The state of a crash.pt, with the batch at which a training ended."""
    state = torch.load(make("transformer", "--optimizer", "adam", "--lr", "0.1"), weights_only=True)
    tokens = torch.tensor([[5, 6, 2]])
    state["extra_state"][SAMPLES] = [
        {
            "id": torch.tensor([0]),
            "nsentences": 1,
            "ntokens": 3,
            "net_input": {
                "src_tokens": tokens,
                "src_lengths": torch.tensor([3]),
                "prev_output_tokens": tokens.roll(1, 1),
            },
            "target": tokens,
        }
    ]
    return state


def test_replay_says_that_memory_does_not_suffice(make, tmp_path, capsys, monkeypatch):
    torch.save(crash_of(make, tmp_path), tmp_path / "crash.pt")

    def full(*_, **__):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr("fairseq.tasks.fairseq_task.FairseqTask.train_step", full)
    status, _, error = call(capsys, "replay", tmp_path / "crash.pt", "--device", "cpu")
    assert (status, error.startswith("error: not enough memory")) == (2, True)


@pytest.mark.parametrize("half", ["fp16", "amp"])
def test_half_precision_is_not_replayed_without_a_gpu(half, make, tmp_path, capsys):
    state = crash_of(make, tmp_path)
    state["cfg"]["common"] |= {half: True, "cpu": False}
    torch.save(state, tmp_path / "crash.pt")
    status, _, error = call(capsys, "replay", tmp_path / "crash.pt", "--device", "cpu")
    assert (status, f"a training with --{half}, which a GPU alone can" in error) == (2, True)


def test_replay_says_what_comes_first_and_no_more_to_replay_it(make, tmp_path, capsys):
    state = crash_of(make, tmp_path)
    state["model"]["decoder.layers.0.fc1.bias"].fill_(math.nan)
    torch.save(state, tmp_path / "crash.pt")
    status, _, error = call(capsys, "replay", tmp_path / "crash.pt", "--device", "cpu")
    assert status == 2
    assert error == (
        f"error: update 4 of {tmp_path / 'crash.pt'}: gradients are NaN here too (first not "
        "finite: parameter decoder.layers.0.fc1.bias); go on from an earlier checkpoint with a "
        "lower --lr or --clip-norm"
    )
