"""Checkpoints and trees, and a finished run of them."""

import pytest

from probing.commands.cli import main
from tests.probing.commands.runs import MODELS, run_words, write_trees
from tests.probing.helpers.model import make_checkpoint, prepared_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two checkpoints, their data folder and three sets of trees."""
    folder = tmp_path_factory.mktemp("run")
    data = prepared_folder(folder / "data")
    for name, arch in MODELS.items():
        (folder / name).mkdir()
        make_checkpoint(folder / name / "checkpoint_best.pt", data, arch)
    for i, (part, count) in enumerate({"train": 30, "dev": 12, "test": 15}.items()):
        write_trees(folder / f"{part}.conllu", count, seed=i)
    return folder


@pytest.fixture(scope="module")
def done(made, tmp_path_factory):
    """A finished run."""
    out = tmp_path_factory.mktemp("out")
    assert main(run_words(made, out)) == 0
    return out
