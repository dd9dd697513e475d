"""Stages of a run that need not be repeated: what they were made from stands beside their file."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.files import sha256
from hyptrans.support.steps import Record

_SUFFIX = ".inputs.json"
_PREPARED = ("data-bin/dict.*.txt", "dict.*.txt", "*.model", "bpe.codes", "manifest.json")
"""The files of a prepared data folder that decide how text becomes numbers."""


def finished(path: Path, inputs: Mapping[str, Any], make: Callable[[], None]) -> Path:
    """Make a file unless an earlier run made it from the same inputs."""
    record = Record(path.with_name(path.name + _SUFFIX), inputs, [path])
    if record.earlier():
        print(f"{path}: from an earlier run", file=sys.stderr)
    else:
        record.make(make)
    return path


def of_data(folder: Path) -> dict[str, str]:
    """Hashes of what a prepared data folder says of pieces and their numbers."""
    files = {file for pattern in _PREPARED for file in folder.glob(pattern) if file.is_file()}
    return {str(file.relative_to(folder)): sha256(file) for file in sorted(files)}
