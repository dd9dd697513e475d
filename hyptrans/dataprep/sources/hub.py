"""Pairs from a data set that the ``datasets`` library can load, by hub name or local path."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.dataprep.plan import PairSource, Tally
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
    for path in Path(name).rglob("*") if Path(name).is_dir() else ():
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UserError(f"--hub {name} is refused: {path} is a pipe or a device")
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


def local_inputs(name: str) -> list[Path]:
    """Return the path behind a name if it is local."""
    return [Path(name)] if Path(name).exists() else []


def splits(
    name: str, config: str | None, revision: str | None, languages: tuple[str, str]
) -> dict[str, PairSource]:
    """Return the splits of a data set by name, ``train`` and ``test`` among them.

    A split has a column ``translation``, which holds a text per language.

    Raises:
        UserError: it cannot be loaded, or has no training or test split.
    """
    loaded = load(name, config, revision)
    for needed in ("train", "test"):
        if needed not in loaded:
            raise UserError(f"--hub {name} has no split {needed!r}, only {', '.join(loaded)}")
    settings = {"hub": name, "config": config, "revision": revision}
    sources = {}
    for split, rows in loaded.items():
        place = f"--hub {name}, split {split}"
        read = partial(_read, rows, place, split, languages)
        sources[split] = PairSource(place, local_inputs(name), {**settings, "split": split}, read)
    return sources


def _read(
    rows: Any, place: str, split: str, languages: tuple[str, str], tally: Tally
) -> Iterator[tuple[str, str]]:
    if _COLUMN not in rows.column_names:
        raise UserError(f"{place} has no column {_COLUMN!r}, only {', '.join(rows.column_names)}")
    for number, row in enumerate(rows, start=1):
        pair = row[_COLUMN] if isinstance(row[_COLUMN], Mapping) else {}
        source, target = map(pair.get, languages)
        if not isinstance(source, str) or not isinstance(target, str):
            raise UserError(f"{place}, row {number} has no text for {' and '.join(languages)}")
        tally.parts[split] += 1
        yield source, target
