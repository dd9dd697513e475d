"""Multi30k task 1, English to German, as raw text."""

from __future__ import annotations

import argparse
from pathlib import Path

from hyptrans.support.errors import UserError
from recipes.common import options

SOURCE, TARGET = "en", "de"
SETS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
FOLDER = "multi30k_en_de"
CONTENTS = "train, val and test_2016_flickr as .en and .de, plain or .gz"
VOCABULARY = 6000
"""Pieces of the joint sentencepiece model."""
LOWERCASED_VOCABULARY = 10000
"""Merges of the joint byte-pair encoding of lower-cased tokens, as Revisit-MMT's."""


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``."""
    options.add_data(parser, CONTENTS, name=FOLDER)


def files(data: Path | None) -> dict[str, tuple[Path, Path]]:
    """Source and target file of each set in a folder.

    Raises:
        UserError: a file is missing, or no folder is named.
    """
    if data is None:
        raise UserError(
            "--data is needed: a folder with Multi30k task 1 as raw text, "
            "from https://github.com/multi30k/dataset"
        )
    found = paths(data)
    for path in (path for pair in found.values() for path in pair):
        if not path.is_file():
            raise UserError(f"--data: {path} and {path.name}.gz are both missing")
    return found


def paths(data: Path) -> dict[str, tuple[Path, Path]]:
    """Source and target file of each set, plain where no gzipped one is there."""
    return {
        split: (_path(data, name, SOURCE), _path(data, name, TARGET))
        for split, name in SETS.items()
    }


def _path(data: Path, name: str, language: str) -> Path:
    plain = data / f"{name}.{language}"
    zipped = plain.with_name(f"{plain.name}.gz")
    return zipped if zipped.is_file() and not plain.is_file() else plain
