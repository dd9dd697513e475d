import pytest
import torch

import hyptrans
from tests.commands.conftest import call, refused


def test_average_writes_a_checkpoint_without_replacing_a_file(make, tmp_path, capsys):
    paths = [make("hybonet"), make("hybonet")]
    out = tmp_path / "average.pt"
    assert call(capsys, "average", *paths, "--out", out)[0] == 0
    assert hyptrans.load(out).architecture == "hybonet"
    before = out.read_bytes()
    said = refused(capsys, "average", *paths, "--out", out)
    assert said == f"--out {out} already exists: name another file"
    assert out.read_bytes() == before
    for chosen, wanted in (
        ([*paths, "--last", 2], "--last chooses from one folder: name a --save-dir alone"),
        ([tmp_path / "none", "--last", 2], f"{tmp_path / 'none'}: No such file or directory"),
        ([tmp_path], f"{tmp_path} is a folder: choose from it with --last N"),
    ):
        assert refused(capsys, "average", *chosen, "--out", tmp_path / "new") == wanted


def test_card_of_an_average_names_it_as_such(make, tmp_path, capsys):
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
    assert "1400,\n    1500" in call(capsys, "info", tmp_path / "model")[1]
    assert call(capsys, "export", paths[0], "--out", tmp_path / "one")[0] == 0
    assert "average" not in (tmp_path / "one" / "README.md").read_text()


@pytest.mark.parametrize(
    "averaged",
    ["x", torch.zeros(3), [True], [-1], {"a": 1}],
    ids=lambda value: type(value).__name__,
)
def test_export_refuses_a_damaged_list_of_averaged_updates(averaged, make, tmp_path, capsys):
    path = make("transformer")
    state = torch.load(path, weights_only=True)
    state["extra_state"]["averaged_updates"] = averaged
    torch.save(state, path)
    wanted = "cannot be used: its averaged_updates is not what hyptrans average writes"
    said = refused(capsys, "export", path, "--out", tmp_path / "model")
    assert said == f"checkpoint {path} {wanted}"
