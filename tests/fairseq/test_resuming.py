"""A checkpoint of other formulas or other dictionaries, which fits in shape."""

import shutil

import pytest
import torch

from hyptrans.fairseq.checkpoint import check_dictionaries
from tests.probing.helpers.model import exchange_words
from tests.startup.conftest import TINY, data, fork, sizes, work

__all__ = ["data", "fork", "work"]

SMALL = sizes(embed_dim=8, ffn_embed_dim=8, layers=1)
HYBONET = ["--user-dir=hyptrans", "--arch=hybonet_tiny", *SMALL, *TINY[1:]]


@pytest.fixture(scope="module")
def trained(work, data, fork):
    """A folder with the checkpoint of one update."""
    fork("fairseq-train", data, *HYBONET, "--max-update=1", "--save-dir=resumed", cwd=work)
    return work / "resumed"


@pytest.fixture(scope="module")
def other_data(data):
    """The same data folder with two words in another order."""
    folder = data.parent / "other"
    shutil.copytree(data, folder)
    exchange_words(folder / "dict.de.txt")
    return folder


def refused(fork, work, *words):
    done = fork(*words, cwd=work, check=False)
    assert done.returncode != 0
    return done.stderr.splitlines()[-1]


OTHER = "UserError: checkpoint {} was trained with another target dictionary: name the data folder"


def test_resuming_with_other_dictionaries_is_refused(trained, other_data, work, fork):
    train = ["fairseq-train", other_data, *HYBONET, "--max-update=2"]
    file = trained / "checkpoint_last.pt"
    said = refused(fork, work, *train, f"--save-dir={trained}")
    assert OTHER.format(file) in said
    said = refused(fork, work, *train, "--save-dir=new", f"--finetune-from-model={file}")
    assert OTHER.format(file) in said


@pytest.mark.parametrize("command", ["generate", "validate"])
def test_translating_with_other_dictionaries_is_refused(command, trained, other_data, work, fork):
    file = trained / "checkpoint_last.pt"
    words = [f"fairseq-{command}", other_data, "--user-dir=hyptrans", "--path", file, "--cpu"]
    assert OTHER.format(file) in refused(fork, work, *words, "--max-tokens=200")


def test_resuming_with_other_formulas_is_refused(trained, data, work, fork):
    train = ["fairseq-train", data, *HYBONET, "--max-update=2"]
    said = refused(fork, work, *train, f"--save-dir={trained}", "--curvature=2")
    assert "was trained with --curvature 1.0 and not 2.0: name another --save-dir" in said
    # its parameters are a start all the same
    start = [f"--finetune-from-model={trained / 'checkpoint_last.pt'}", "--save-dir=started"]
    fork(*train, *start, "--curvature=2", cwd=work)


def test_an_older_checkpoint_loads_with_a_warning(trained, data, work, fork, tmp_path):
    state = torch.load(trained / "checkpoint_last.pt")
    assert len(state.pop("dictionaries")) == 2
    torch.save(state, tmp_path / "checkpoint_last.pt")
    train = ["fairseq-train", data, *HYBONET, "--max-update=2", f"--save-dir={tmp_path}"]
    said = "does not say which dictionaries it was trained with"
    assert said in fork(*train, cwd=work).stderr
    assert said not in fork(*train[:-2], "--max-update=3", train[-1], cwd=work).stderr


def test_checkpoint_records_its_command_without_local_paths(trained):
    command = torch.load(trained / "checkpoint_last.pt")["command"]
    assert command.startswith("fairseq-train PATH --user-dir=hyptrans --arch=hybonet_tiny ")
    assert "--max-update=1" in command
    # a checkpoint of 0.2.0 has no such records
    state = torch.load(trained / "checkpoint_last.pt")
    check_dictionaries("old.pt", {"model": state["model"]}, {"source": None})
