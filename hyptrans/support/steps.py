"""Steps that are done once: a record says what a step was made from, what it left, what it found.

A step's record goes before the step begins and comes back when all of its outputs are there, so a
run that is killed at any moment never has the next one take an old output for a new one.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support.files import sync_folder, write_json


@dataclass(frozen=True)
class Done:
    """A finished step.

    Attributes:
        id: what a later step may be made from: another one whenever the step is run, or what
            :meth:`Record.make` was told to call it.
        notes: what the step counted, or how long it took.
    """

    id: str
    notes: dict[str, Any]


class Record:
    """The record of one step, in a file of its own.

    Args:
        path: the file; records of several steps may be used by several threads.
        made_from: what decides the outputs: settings, hashes of inputs, ids of earlier steps.
        outputs: files and folders that the step leaves.
        mark: what an output must have again to count as still there, false for one that is
            missing; by default it only has to exist.
    """

    def __init__(
        self,
        path: Path,
        made_from: Mapping[str, Any],
        outputs: Iterable[Path],
        *,
        mark: Callable[[Path], object] = Path.exists,
    ) -> None:
        self.path = path
        self._made_from = _as_read(made_from)
        self._outputs = list(outputs)
        self._mark = mark

    def earlier(self) -> Done | None:
        """Return the step as an earlier run finished it, None if it must be run."""
        found = _read(self.path)
        if found.get("made_from") != self._made_from:
            return None
        marks = self._marks()
        if not all(marks.values()) or found.get("outputs") != marks:
            return None
        return _done(found)

    def make(
        self,
        run: Callable[[], Mapping[str, Any] | None],
        *,
        name: Callable[[], str] | None = None,
    ) -> Done:
        """Run the step and note that it is finished, with what it returns.

        Args:
            run: the step.
            name: its id, asked for when it has been run; another one each time if None.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        notes = dict(run() or {})
        done = Done(name() if name else uuid.uuid4().hex, notes)
        noted = {"made_from": self._made_from, "outputs": self._marks()}
        write_json(self.path, {**noted, "id": done.id, "notes": done.notes})
        return done

    def _marks(self) -> dict[str, Any]:
        # beside the record, so that both may be moved together
        return {os.path.relpath(path, self.path.parent): self._mark(path) for path in self._outputs}


def recorded(path: Path) -> Done | None:
    """Return the step that a record tells of, None if it is missing or damaged."""
    return _done(_read(path))


def digest(made_from: Mapping[str, Any]) -> str:
    """Return a short name for what a step is made from; the same contents have the same one."""
    return hashlib.sha256(json.dumps(_as_read(made_from), sort_keys=True).encode()).hexdigest()


def _as_read(values: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(values, default=str))


def _read(path: Path) -> dict[str, Any]:
    """A record's contents, nothing if it is missing or damaged: then the step is run again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _done(found: Mapping[str, Any]) -> Done | None:
    id_, notes = found.get("id"), found.get("notes")
    return Done(id_, notes) if isinstance(id_, str) and isinstance(notes, dict) else None
