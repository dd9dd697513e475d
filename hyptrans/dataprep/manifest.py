"""``manifest.json``: what went in, what each step counted, what came out."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, sha256, write_json
from hyptrans.support.stored import read_json

NAME = "manifest.json"
_MOST_BYTES = 16 << 20
"""A manifest has some hundred for each file."""
_NEEDED = {"command": list, "inputs": dict, "outputs": dict}
"""What every manifest has."""


def describe_files(paths: Iterable[Path], base: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return hash and size of each file, by its path (relative to ``base`` if given)."""
    return {
        (path.relative_to(base).as_posix() if base else str(path)): {
            "sha256": sha256(path),
            "bytes": _size(path),
        }
        for path in paths
    }


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())
    return path.stat().st_size


def load(out: Path) -> dict[str, Any] | None:
    """Return the manifest of a finished folder, None where there is none.

    Raises:
        UserError: the file is there but is not a manifest.
    """
    path = out / NAME
    if not path.exists():
        return None
    try:
        found = read_json(read_bytes(path, _MOST_BYTES).decode())
        whole = all(isinstance(found.get(name), kind) for name, kind in _NEEDED.items())
        if whole and all(map(_is_described, found["inputs"].values())):
            return found
    except ValueError:
        pass
    raise UserError(f"{path} is not a manifest of these commands: name another folder")


def _is_described(file: Any) -> bool:
    return isinstance(file, dict) and isinstance(file.get("sha256"), str)


def first_missing(out: Path, content: Mapping[str, Any]) -> Path | None:
    """Return an output that is gone, None if all are there.

    Raises:
        UserError: one was changed since.
    """
    noted = {out / name: entry for name, entry in content["outputs"].items()}
    missing = next((path for path in noted if not path.exists()), None)
    for path, entry in noted.items():
        # hashes, which take long, only where all are made again
        if path.exists() and not _is_as_noted(path, entry, hashed=missing is not None):
            raise UserError(
                f"{path} was changed after it was made; "
                "choose another --out, or --overwrite to make it again"
            )
    return missing


def _is_as_noted(path: Path, entry: Any, *, hashed: bool) -> bool:
    if not isinstance(entry, dict) or entry.get("bytes") != _size(path):
        return False
    return not hashed or entry.get("sha256") == sha256(path)


def write(out: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest; its presence says that the folder is finished."""
    write_json(out / NAME, content)
