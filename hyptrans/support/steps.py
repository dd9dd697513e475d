"""Steps that a run does once: after a stop, the same command resumes with the interrupted step.

A step writes its outputs whole, then its record. An old record is removed before the step begins,
so that a run killed at any moment never mistakes an old output for a new one. A kill loses only
the step that was running.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, one_line
from hyptrans.support.files import sync_folder, take_lock, write_json

Notes = dict[str, Any]
"""The return value of a step, as read back from JSON."""
_RECORDS, _LOCK = "steps", "lock"


@dataclass(frozen=True)
class Step:
    """One step of a run.

    Attributes:
        name: name of its record, valid as a file name.
        outputs: files and folders that the step writes, each whole.
        run: makes the outputs; its return value is stored as JSON.
        settings: all that decides the outputs, as JSON, including the settings of earlier steps on
            which they depend.
    """

    name: str
    outputs: Sequence[Path]
    run: Callable[[], Mapping[str, Any] | None]
    settings: Mapping[str, Any] = field(default_factory=dict)


def run(steps: Iterable[Step], folder: Path, notes: dict[str, Notes] | None = None) -> None:
    """Run the steps in order, except those that an earlier run finished.

    The folder holds their records. ``notes`` receives by name what each step returned, now or in an
    earlier run, before the next one is taken from a generator.

    Raises:
        UserError: another run is using the folder, or a step did not write an output.
    """
    with alone(folder):
        follow(steps, folder, notes)


def follow(steps: Iterable[Step], folder: Path, notes: dict[str, Notes] | None = None) -> None:
    """Do the same as :func:`run` for a caller that has locked the folder itself."""
    start = time.monotonic()
    for step in steps:
        found = finished(step, folder)
        minutes, seconds = divmod(int(time.monotonic() - start), 60)
        said = "" if found is None else ": done by an earlier run"
        sys.stderr.write(f"[{minutes}:{seconds:02d}] {one_line(step.name)}{said}\n")
        found = make(step, folder) if found is None else found
        if notes is not None:
            notes[step.name] = found


def finished(step: Step, folder: Path) -> Notes | None:
    """Return the notes of a step from an earlier run; None if the step must run.

    It must run if an output is gone, or if its record is missing, damaged or has other settings.
    """
    try:
        found = json.loads(_record(step, folder).read_text(encoding="utf-8"))
        same = found["settings"] == _as_read(step.settings)
        notes: Notes = found["notes"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return notes if same and all(path.exists() for path in step.outputs) else None


def make(step: Step, folder: Path) -> Notes:
    """Run a step and record it; several threads may each run one.

    Raises:
        UserError: the step ended without writing one of its outputs.
    """
    record = _record(step, folder)
    if record.exists():
        record.unlink()
        sync_folder(record.parent)
    start = time.monotonic()
    notes: Notes = _as_read(step.run() or {})
    missing = next((path for path in step.outputs if not path.exists()), None)
    if missing:
        raise UserError(f"{step.name} ended without writing {missing}")
    seconds = round(time.monotonic() - start, 1)
    settings = _as_read(step.settings)
    write_json(record, {"settings": settings, "notes": notes, "seconds": seconds})
    return notes


def is_kept_in(folder: Path) -> bool:
    """Return whether a folder holds, or held, the records of a run."""
    return (folder / _RECORDS / _LOCK).is_file()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, created if needed; a kill releases it.

    Raises:
        UserError: another run is using the folder.
    """
    records = folder / _RECORDS
    records.mkdir(parents=True, exist_ok=True)
    lock = take_lock(records / _LOCK, folder)
    try:
        yield
    finally:
        os.close(lock)


def _record(step: Step, folder: Path) -> Path:
    return folder / _RECORDS / f"{step.name}.json"


def _as_read(values: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(values, default=str))
