"""Model folders with graphs, of models made anew."""

import functools

import pytest

from hyptrans.commands.cli import main
from tests.inference.conftest import POSITIONS
from tests.inference.conftest import export as export_folder
from tests.probing.helpers.model import make_checkpoint

SMALL = ["--encoder-layers=1", "--decoder-layers=2"]


@pytest.fixture(scope="session")
def graphs_of(prepared, tmp_path_factory):
    """The model folder of an architecture with graphs, by ``hyptrans export`` itself."""

    @functools.cache
    def made(arch, weights="float32"):
        place = tmp_path_factory.mktemp(arch)
        make_checkpoint(place / "model.pt", prepared, arch, *POSITIONS, *SMALL)
        folder = export_folder(place / "model.pt", place / "plain")
        main(["export", str(folder), "--onnx", weights, "--out", str(place / "graphs")])
        return place / "graphs"

    return made
