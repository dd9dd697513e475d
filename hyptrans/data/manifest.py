"""``manifest.json``: the inputs, the counts of each step, and the outputs.

Its presence marks a folder as finished.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, read_json, sha256

NAME = "manifest.json"
_MOST_BYTES = 16 << 20
"""A manifest has a few hundred bytes per file."""
_NEEDED = {"command": list, "inputs": dict, "outputs": dict}
"""Fields, with their types, that every manifest has, even one of 0.2.0."""


def describe_files(paths: Iterable[Path], base: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return the hash of each file or folder, by its path (relative to ``base`` if given)."""
    return {
        (path.relative_to(base).as_posix() if base else str(path)): {"sha256": sha256(path)}
        for path in paths
    }


def load(out: Path) -> dict[str, Any] | None:
    """Return the manifest of a finished folder, None if there is none.

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
