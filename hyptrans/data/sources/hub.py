"""Pairs from a data set that the ``datasets`` library loads by hub name or local path."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.data.corpus import Pairs
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require

_COLUMN = "translation"
_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
"""Names of splits, and of the sets that they become."""
HELD_OUT = 100
"""If a data set has no validation split, one of this many training pairs is held out."""


def sets(
    name: str, languages: tuple[str, str], config: str | None
) -> dict[str, Callable[[], Pairs]]:
    """Return functions that yield the pairs of each set; ``name`` may also be a path.

    Raises:
        UserError: it cannot be loaded, or has no training or test split.
    """
    loaded = _load(name, config)
    for needed in ("train", "test"):
        if needed not in loaded:
            raise UserError(f"--hub {name} has no split {needed!r}, only {', '.join(loaded)}")
    return {
        one: partial(_read, loaded[split], f"--hub {name}, split {split}", languages)
        for split, one in _SPLITS.items()
        if split in loaded
    }


def _load(name: str, config: str | None) -> Any:
    """Return the ``DatasetDict`` of a hub name or a folder of data files, or one saved to disk."""
    datasets = require("datasets", "data")
    try:
        if (Path(name) / "dataset_dict.json").is_file():
            return datasets.load_from_disk(name)
        return datasets.load_dataset(name, config)
    # the library raises all kinds of errors, from FileNotFoundError to pyarrow's own
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        hint = "" if Path(name).exists() else "; without a network give the path of a local copy"
        raise UserError(f"--hub {name} cannot be loaded: {reason}{hint}") from error


def _read(rows: Any, place: str, languages: tuple[str, str]) -> Pairs:
    nested = _COLUMN in rows.column_names
    for number, row in enumerate(rows, start=1):
        pair = row[_COLUMN] if nested else row
        source, target = map(pair.get, languages) if isinstance(pair, Mapping) else (None, None)
        if not isinstance(source, str) or not isinstance(target, str):
            raise UserError(
                f"{place}, row {number} has no text for {' and '.join(languages)}, only columns "
                f"{', '.join(rows.column_names)}"
            )
        yield source, target
