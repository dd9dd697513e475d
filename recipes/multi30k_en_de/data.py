"""Multi30k task 1, English to German, as raw text."""

from __future__ import annotations

import argparse
from pathlib import Path

from hyptrans.support.errors import UserError
from recipes.common import options

LANGUAGES = ("en", "de")
SETS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
VOCABULARY = 6000
"""Pieces of the joint sentencepiece model."""


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``."""
    contents = "train, val and test_2016_flickr as .en and .de, plain or .gz"
    options.add_data(parser, contents, name="multi30k_en_de")


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
    found = {}
    for split, name in SETS.items():
        plain = [data / f"{name}.{language}" for language in LANGUAGES]
        source, target = map(options.plain_or_zipped, plain)
        for path in (source, target):
            if not path.is_file():
                raise UserError(f"--data: {path} and {path.name}.gz are both missing")
        found[split] = source, target
    return found
