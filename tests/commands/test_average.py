"""``hyptrans average``: what it writes, and what it never takes the place of."""

import shutil

import numpy as np
import pytest
import torch

import hyptrans
from tests.commands.conftest import call


def test_average_writes_a_checkpoint(make, tmp_path, capsys):
    paths = [make("hybonet"), make("hybonet")]
    out = tmp_path / "average.pt"
    assert call(capsys, "average", *paths, "--out", out)[0] == 0
    assert hyptrans.load(out).architecture == "hybonet"
    status, _, error = call(capsys, "average", *paths, "--last", 2, "--out", out)
    assert status == 2
    assert error == "error: --last and --best choose from one folder: name that alone"
    status, _, error = call(capsys, "average", tmp_path / "none", "--best", 2, "--out", out)
    assert status == 2
    assert error == f"error: folder {tmp_path / 'none'} does not exist: name a --save-dir"


def test_the_card_of_an_average_says_that_it_is_one(make, tmp_path, capsys):
    paths = []
    for updates in (1400, 1500):
        paths.append(make("hybonet"))
        state = torch.load(paths[-1], weights_only=True)
        state["optimizer_history"][-1]["num_updates"] = updates
        torch.save(state, paths[-1])
    out = tmp_path / "average.pt"
    assert call(capsys, "average", *paths, "--out", out)[0] == 0
    assert call(capsys, "export", out, "--out", tmp_path / "model")[0] == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "* Parameters: the average of those after 1,400, 1,500 updates" in card
    assert "1,400, 1,500" in call(capsys, "info", tmp_path / "model")[1]
    assert call(capsys, "export", paths[0], "--out", tmp_path / "one")[0] == 0
    assert "average" not in (tmp_path / "one" / "README.md").read_text()


@pytest.mark.parametrize(
    "averaged",
    ["x", 5, torch.zeros(3), np.array([1]), ["x"], [True], [-1], [1 << 64], {"a": 1}],
    ids=lambda value: type(value).__name__,
)
def test_an_average_of_no_numbers_of_updates_is_refused(averaged, make, tmp_path, capsys):
    path = make("transformer")
    state = torch.load(path, weights_only=True)
    state["extra_state"]["averaged_updates"] = averaged
    torch.save(state, path)
    status, _, error = call(capsys, "export", path, "--out", tmp_path / "model")
    wanted = "cannot be used: its averaged_updates is not what hyptrans average writes"
    assert (status, error) == (2, f"error: checkpoint {path} {wanted}")


def test_an_average_in_place_of_one_of_its_checkpoints_is_refused(make, tmp_path, capsys):
    paths = [shutil.copy(make("hybonet"), tmp_path / f"checkpoint_1_{n}.pt") for n in (1, 2)]
    before = [path.read_bytes() for path in paths]
    (tmp_path / "link.pt").symlink_to(paths[0])
    named = "one of the checkpoints to average"
    for out, chosen, wrong in [
        (paths[1], paths, named),
        (tmp_path / "link.pt", paths, named),
        (paths[1], [tmp_path, "--last", "1"], "there already and is no average"),
    ]:
        status, _, error = call(capsys, "average", *chosen, "--out", out)
        assert status == 2
        assert error == f"error: --out {out} is {wrong}: name another file"
    assert [path.read_bytes() for path in paths] == before


def test_an_average_takes_the_place_of_an_average_alone(make, tmp_path, capsys):
    paths = [make("hybonet"), make("hybonet")]
    out, best, note = (tmp_path / name for name in ("average.pt", "checkpoint_best.pt", "note"))
    for _ in range(2):
        assert call(capsys, "average", *paths, "--out", out)[0] == 0
    shutil.copy(make("hybonet"), best)
    note.write_text("mine")
    for other in (best, note):
        before = other.read_bytes()
        status, _, error = call(capsys, "average", *paths, "--out", other)
        assert status == 2
        assert (
            error == f"error: --out {other} is there already and is no average: name another file"
        )
        assert other.read_bytes() == before


def test_an_average_in_place_of_what_a_training_goes_on_from_is_refused(make, tmp_path, capsys):
    last = tmp_path / "checkpoint_last.pt"
    for _ in range(2):
        status, _, error = call(capsys, "average", make("hybonet"), "--out", last)
        assert status == 2
        assert error.startswith(f"error: --out {last} is what fairseq-train goes on from, and")
        assert not last.exists() or last.read_text() == "mine"
        last.write_text("mine")
