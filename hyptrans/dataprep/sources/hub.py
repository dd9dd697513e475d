"""Pairs from a data set that the ``datasets`` library can load, by hub name or local path."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.dataprep.plan import Tally
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require

_COLUMN = "translation"
_MOST_SHOWN = 200
"""Characters of what was found, in messages."""


def load(name: str, config: str | None, revision: str | None) -> Any:
    """Return the ``DatasetDict`` of a hub name, of a folder of data files, or one saved to disk.

    Raises:
        UserError: it names files outside of itself, or cannot be loaded; says why in the words of
            ``datasets``.
    """
    datasets = require("datasets", "data")
    try:
        if (Path(name) / "dataset_dict.json").is_file():
            loaded = datasets.load_from_disk(name)
            maps = (one["filename"] for split in loaded.values() for one in split.cache_files)
            _check_inside(name, maps)
            return loaded
        # what load_dataset does, with a look at the files before they are read
        builder = datasets.load_dataset_builder(name, config, revision=revision)
        files = builder.config.data_files or {}
        _check_inside(name, (str(file) for split in files.values() for file in split))
        builder.download_and_prepare()
        return builder.as_dataset()
    except UserError:
        raise
    # the library raises anything from FileNotFoundError to pyarrow's own errors
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        hint = "" if Path(name).exists() else "; without a network give the path of a local copy"
        raise UserError(f"--hub {name} cannot be loaded: {reason}{hint}") from error


def _check_inside(name: str, files: Iterable[str]) -> None:
    """Refuse what a data set's own description takes from elsewhere: it may be the user's alone.

    Raises:
        UserError: a file is not in the folder or repository, or is a link that leads out of it.
    """
    folder = Path(name).resolve()
    for file in files:
        if folder.exists():
            inside = Path(file).resolve().is_relative_to(folder)
        else:
            inside = file.startswith(f"hf://datasets/{name}@")
        # after two colons stands the archive that a file is in
        if not inside or "::" in file:
            raise UserError(
                f"--hub {name} is refused: it takes {file[:_MOST_SHOWN]} for a part of itself, "
                "which is not in it; name a copy that has all its files, without links"
            )


@dataclass(frozen=True)
class HubSplit:
    """One split, with a column ``translation`` that holds a text per language.

    Attributes:
        rows: the split.
        name: as given by the user, for messages.
        split: its name.
        languages: source and target.
        settings: what identifies the data beside a local path.
    """

    rows: Any
    name: str
    split: str
    languages: tuple[str, str]
    settings: dict[str, Any]

    @property
    def place(self) -> str:
        """The data set and the split, as the user named them."""
        return f"--hub {self.name}, split {self.split}"

    @property
    def inputs(self) -> list[Path]:
        """The local path, if it is one."""
        return local_inputs(self.name)

    def read(self, tally: Tally) -> Iterator[tuple[str, str]]:
        """Yield the pairs of the split."""
        where = self.place
        if _COLUMN not in self.rows.column_names:
            raise UserError(
                f"{where} has no column {_COLUMN!r}, only {', '.join(self.rows.column_names)}"
            )
        for number, row in enumerate(self.rows, start=1):
            pair = row[_COLUMN] if isinstance(row[_COLUMN], Mapping) else {}
            source, target = map(pair.get, self.languages)
            if not isinstance(source, str) or not isinstance(target, str):
                raise UserError(
                    f"{where}, row {number} has no text for {' and '.join(self.languages)}"
                )
            tally.parts[self.split] += 1
            yield source, target


def local_inputs(name: str) -> list[Path]:
    """Return the path behind a name if it is local."""
    return [Path(name)] if Path(name).exists() else []


def splits(
    name: str, config: str | None, revision: str | None, languages: tuple[str, str]
) -> dict[str, HubSplit]:
    """Return the splits of a data set by name, ``train`` and ``test`` among them.

    Raises:
        UserError: it cannot be loaded, or has no training or test split.
    """
    loaded = load(name, config, revision)
    for needed in ("train", "test"):
        if needed not in loaded:
            raise UserError(f"--hub {name} has no split {needed!r}, only {', '.join(loaded)}")
    settings = {"hub": name, "config": config, "revision": revision}
    return {
        split: HubSplit(loaded[split], name, split, languages, {**settings, "split": split})
        for split in loaded
    }
