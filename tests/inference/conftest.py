"""Small models of all architectures on a prepared folder, as checkpoints and as model folders."""

import itertools
from functools import partial

import pytest
import torch

import hyptrans
from hyptrans.fairseq import checkpoint
from hyptrans.inference.sharing import folder
from hyptrans.models.euclidean import UNSET
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences

ARCHS = ("hybonet", "han", "hypformer", "hvt", "transformer")
POSITIONS = ["--max-source-positions", "64", "--max-target-positions", "128"]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Folders as hyptrans prepare leaves them: a dictionary for each side, and one for both."""
    return prepared_folder(tmp_path_factory.mktemp("prepared") / "data")


@pytest.fixture(scope="session")
def texts():
    """Sentences of many lengths, an empty one among them."""
    made = sentences(8, seed=5)
    return [*made[:4], "", *made[4:]]


_count = itertools.count()


@pytest.fixture
def make_of(tmp_path):
    """Make a checkpoint of fresh parameters that are unlike each other, for a prepared folder."""

    def made(data, arch, *flags):
        path = tmp_path / f"{arch}{next(_count)}.pt"
        make_checkpoint(path, data, arch, *POSITIONS, *flags)
        return path

    return made


@pytest.fixture
def make(make_of, prepared):
    """The same, for the folder of the tests."""
    return partial(make_of, prepared)


def export(path, out, precision="full", **options):
    """What the command does, without a process of its own."""
    contents = checkpoint.read(path, **options)
    folder.write(contents, out, card="# card\n", precision=precision)
    return out


def same_states(one, other):
    """Return whether two models have equal parameters."""
    first, second = one.model.state_dict(), other.model.state_dict()
    names = [name for name in first if not name.endswith(UNSET)]
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in names)


load = hyptrans.load


@pytest.fixture
def written(make, tmp_path):
    return export(make("hybonet"), tmp_path / "model")
