"""Stages of a run that need not be repeated: what they were made from stands beside their file."""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.files import sha256
from probing.report.results import write_text

_SUFFIX = ".inputs.json"
_PREPARED = ("data-bin/dict.*.txt", "dict.*.txt", "*.model", "bpe.codes", "manifest.json")
"""The files of a prepared data folder that decide how text becomes numbers."""


def finished(path: Path, inputs: Mapping[str, Any], make: Callable[[], object]) -> Path:
    """Make a file unless an earlier run made it from the same inputs."""
    beside = path.with_name(path.name + _SUFFIX)
    wanted = json.dumps(inputs, indent=1, sort_keys=True, default=str) + "\n"
    if path.is_file() and beside.is_file() and beside.read_text(encoding="utf-8") == wanted:
        print(f"{path}: from an earlier run", file=sys.stderr)
        return path
    # whatever stops this run, the next one must not take an old file for a new one
    beside.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make()
    write_text(beside, wanted)
    return path


def digest(inputs: Mapping[str, Any]) -> str:
    """A short name for inputs, to be an input of a later stage."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()


def of_data(folder: Path) -> dict[str, str]:
    """Hashes of what a prepared data folder says of pieces and their numbers."""
    files = {file for pattern in _PREPARED for file in folder.glob(pattern) if file.is_file()}
    return {str(file.relative_to(folder)): sha256(file) for file in sorted(files)}
