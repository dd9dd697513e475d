"""Small models of all architectures on a prepared folder, as checkpoints and as model folders."""

import itertools

import pytest
import torch

import hyptrans
from hyptrans.inference import checkpoint, folder
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences

ARCHS = ("hybonet", "han", "hypformer", "hvt", "transformer")
POSITIONS = ["--max-source-positions", "64", "--max-target-positions", "128"]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Folders as data-prep/ leaves them: a dictionary for each side, and one for both."""
    return prepared_folder(tmp_path_factory.mktemp("prepared") / "data")


@pytest.fixture(scope="session")
def texts():
    """Sentences of many lengths, an empty one among them."""
    made = sentences(8, seed=5)
    return [*made[:4], "", *made[4:]]


_count = itertools.count()


@pytest.fixture
def make(tmp_path, prepared):
    """Make a checkpoint of fresh parameters that are unlike each other."""

    def made(arch, *flags):
        path = tmp_path / f"{arch}{next(_count)}.pt"
        make_checkpoint(path, prepared, arch, *POSITIONS, *flags)
        return path

    return made


def export(path, out, precision="full", **options):
    """What the command does, without a process of its own."""
    contents = checkpoint.read(path, **options)
    folder.write(contents, out, card="# card\n", precision=precision)
    return out


def same_states(one, other):
    """Whether two models have equal parameters."""
    first, second = one.model.state_dict(), other.model.state_dict()
    # a number of fairseq's that is never set
    names = [name for name in first if not name.endswith("_float_tensor")]
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in names
    )


def load(path):
    return hyptrans.load(path)
