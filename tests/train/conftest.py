"""A data folder of a few hundred pairs, prepared as a user prepares it."""

import subprocess
import sys

import pytest

from tests.probing.helpers.model import sentences, write_lines

pytest.importorskip("accelerate")
COUNTS = {"train": 240, "valid": 12, "test": 12}
TINY = ["--arch", "hybonet_plus_tiny", "--encoder-embed-dim", "16", "--decoder-embed-dim", "16"]
TINY += ["--encoder-ffn-embed-dim", "32", "--decoder-ffn-embed-dim", "32"]


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    command = [sys.executable, "-m", "hyptrans", "prepare", "text", "--raw-text"]
    for seed, (split, count) in enumerate(COUNTS.items()):
        lines = sentences(count, seed)
        pair = (lines, [line.upper() for line in lines])
        paths = [
            write_lines(folder / f"{split}.{side}", text)
            for side, text in zip(("en", "de"), pair, strict=True)
        ]
        command += [f"--{split}", *map(str, paths)]
    command += ["--vocab-size", "70", "--workers", "1", "--out", str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "data"
