"""A data folder of a few hundred pairs, prepared as a user prepares it."""

import pytest

from tests.probing.helpers.model import write_pairs
from tests.programs import HYPTRANS, run

pytest.importorskip("accelerate")
TINY = ["--arch", "hybonet_plus_tiny", "--encoder-embed-dim", "16", "--decoder-embed-dim", "16"]
TINY += ["--encoder-ffn-embed-dim", "32", "--decoder-ffn-embed-dim", "32"]


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    words = [*write_pairs(folder), "--raw-text", "--vocab-size", 70, "--workers", 1]
    run(*HYPTRANS, "prepare", "text", *words, "--out", folder / "data")
    return folder / "data"
