"""Steps that a run does once: after a stop, the same command goes on with the step it was in.

A step writes its outputs whole, and its record comes after them. The record goes before the step
begins, so that a run that is killed at any moment never takes an old output for a new one. What a
kill loses is the one step that was at work.
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
"""What a step returned, as JSON gives it back."""
_RECORDS, _LOCK = "steps", "lock"


@dataclass(frozen=True)
class Step:
    """One step of a run.

    Attributes:
        name: of its record; a file can have it.
        outputs: files and folders that the step leaves, whole.
        run: makes them; what it returns is kept, for JSON.
        settings: all that decides the outputs, for JSON. Where an earlier step decides them too,
            what decides that one belongs here as well.
    """

    name: str
    outputs: Sequence[Path]
    run: Callable[[], Mapping[str, Any] | None]
    settings: Mapping[str, Any] = field(default_factory=dict)


def run(steps: Iterable[Step], folder: Path, notes: dict[str, Notes] | None = None) -> None:
    """Run the steps in order, but those that an earlier run finished.

    Args:
        steps: of one folder; a generator may look at ``notes`` before it yields the next.
        folder: keeps the records, and belongs to one run at a time.
        notes: gets what each step returned, now or in the earlier run, by its name.

    Raises:
        UserError: another run is at work in the folder, or a step left an output out.
    """
    with alone(folder):
        follow(steps, folder, notes)


def follow(steps: Iterable[Step], folder: Path, notes: dict[str, Notes] | None = None) -> None:
    """:func:`run` for a program that keeps others out of the folder itself."""
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
    """What a step returned in an earlier run; None where it must be made.

    It must where an output is gone, or where its record is missing, damaged or of other settings.
    """
    try:
        found = json.loads(_record(step, folder).read_text(encoding="utf-8"))
        same = found["settings"] == _as_read(step.settings)
        notes: Notes = found["notes"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return notes if same and all(path.exists() for path in step.outputs) else None


def make(step: Step, folder: Path) -> Notes:
    """Make a step and record it; several threads may each make one.

    Raises:
        UserError: the step ended without one of its outputs.
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
    """Whether a folder keeps, or kept, the records of a run."""
    return (folder / _RECORDS / _LOCK).is_file()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, which is made if needed; a kill gives it back.

    Raises:
        UserError: another run is at work there.
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
