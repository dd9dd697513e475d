"""Pairs from a data set that the ``datasets`` library can load, by hub name or local path."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.data.plan import PairSource, Tally
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require

_COLUMN = "translation"
_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
"""Names of splits, and of the sets they are here."""
HELD_OUT = 100
"""Of a data set without a validation split, each of so many training pairs is held out."""


@dataclass(frozen=True)
class HubSet:
    """A data set by name or path, with the configuration and the revision that were typed."""

    name: str
    config: str | None
    revision: str | None

    @property
    def inputs(self) -> list[Path]:
        """The path behind the name if it is local."""
        return [Path(self.name)] if Path(self.name).exists() else []

    def sets(self, languages: tuple[str, str]) -> dict[str, PairSource]:
        """Return its sets of source and target.

        Raises:
            UserError: it cannot be loaded, or has no training or test split.
        """
        loaded = self._load()
        for needed in ("train", "test"):
            if needed not in loaded:
                found = ", ".join(loaded)
                raise UserError(f"--hub {self.name} has no split {needed!r}, only {found}")
        sources = {}
        for split, name in _SPLITS.items():
            if split in loaded:
                place = f"--hub {self.name}, split {split}"
                read = partial(_read, loaded[split], place, split, languages)
                sources[name] = PairSource(place, read)
        return sources

    def _load(self) -> Any:
        """The ``DatasetDict`` of a hub name, of a folder of data files, or one saved to disk."""
        datasets = require("datasets", "data")
        try:
            if (Path(self.name) / "dataset_dict.json").is_file():
                return datasets.load_from_disk(self.name)
            return datasets.load_dataset(self.name, self.config, revision=self.revision)
        # the library raises anything from FileNotFoundError to pyarrow's own errors
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            hint = "" if self.inputs else "; without a network give the path of a local copy"
            raise UserError(f"--hub {self.name} cannot be loaded: {reason}{hint}") from error


def _read(
    rows: Any, place: str, split: str, languages: tuple[str, str], tally: Tally
) -> Iterator[tuple[str, str]]:
    nested = _COLUMN in rows.column_names
    if not nested and not set(languages) <= set(rows.column_names):
        raise UserError(
            f"{place} has no column {_COLUMN!r} or {' and '.join(map(repr, languages))}, only "
            f"{', '.join(rows.column_names)}"
        )
    for number, row in enumerate(rows, start=1):
        pair = row[_COLUMN] if nested else row
        source, target = map(pair.get, languages) if isinstance(pair, Mapping) else (None, None)
        if not isinstance(source, str) or not isinstance(target, str):
            raise UserError(f"{place}, row {number} has no text for {' and '.join(languages)}")
        tally.parts[split] += 1
        yield source, target
