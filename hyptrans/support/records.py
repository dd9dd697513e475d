"""Steps that are done once: whatever stops a run, the next one goes on where it stopped.

A step has a name, settings, inputs that count by their contents, outputs, and a record of what it
was made from, what it left and what it found. The record goes before the step begins and comes back
when all of its outputs are there, so a run that is killed at any moment never has the next one take
an old output for a new one. A step is found done, made again, or gone on with where it was stopped.
"""

import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, sync_folder, write_json

_BEGUN = ".begun"
"""Ending of what tells which step was begun last, where it may be gone on with."""


@dataclass(frozen=True)
class Done:
    """A finished step.

    Attributes:
        id: what a later step may be made from: the same for outputs of the same contents, or
            another one each time that the step is made.
        notes: what the step found.
        seconds: how long it took; None where it was stopped in between, as nobody knows then.
    """

    id: str
    notes: dict[str, Any]
    seconds: float | None = None


class Record:
    """The record of one step, in a file of its own; several threads may have one each.

    Args:
        path: the file.
        made_from: what decides the outputs: settings, hashes of inputs, ids of earlier steps.
        outputs: files and folders that the step leaves.
        contents: what tells of an output what it holds.
        checked: an output with other contents than the step left is no longer there; else all
            that exist are.
        unique: the step made again is another one, whatever its outputs hold.
        overwrite: what an earlier run did does not count.
    """

    def __init__(
        self,
        path: Path,
        made_from: Mapping[str, Any],
        outputs: Iterable[Path] = (),
        *,
        contents: Callable[[Path], str] = sha256,
        checked: bool = False,
        unique: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path = path
        self._made_from = _as_read(made_from)
        self._outputs = list(outputs)
        self._contents = contents
        self._checked = checked
        self._unique = unique or not self._outputs
        self._overwrite = overwrite

    def earlier(self) -> Done | None:
        """Return the step as an earlier run finished it, None if it must be made."""
        found = _read(self.path)
        if self._overwrite or found.get("made_from") != self._made_from:
            return None
        marks = self._marks()
        if not all(marks.values()) or found.get("outputs") != marks:
            return None
        return _done(found)

    def make(
        self,
        run: Callable[[], Mapping[str, Any] | None],
        *,
        clear: Callable[[], None] = lambda: None,
        resumes: bool = False,
    ) -> Done:
        """Make the step and note that it is finished, with what it returns.

        Args:
            run: the step.
            clear: removes what an earlier run left, before the step begins.
            resumes: what this very step left where it was stopped stays, as it goes on from there.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        begun = Record(self.path.with_suffix(_BEGUN), self._made_from, overwrite=self._overwrite)
        goes_on = resumes and begun.earlier() is not None
        if resumes and not goes_on:
            begun.make(clear)
        elif not resumes:
            clear()
        start = time.perf_counter()
        notes = dict(run() or {})
        seconds = None if goes_on else round(time.perf_counter() - start, 1)
        done = Done(self._id(), notes, seconds)
        noted = {"made_from": self._made_from, "outputs": self._marks(), "id": done.id}
        write_json(self.path, {**noted, "notes": {**notes, "seconds": seconds}})
        return done

    def _id(self) -> str:
        if self._unique:
            return uuid.uuid4().hex
        return digest({"outputs": [self._contents(path) for path in self._outputs]})

    def _marks(self) -> dict[str, Any]:
        # beside the record, so that both may be moved together
        return {os.path.relpath(path, self.path.parent): self._mark(path) for path in self._outputs}

    def _mark(self, path: Path) -> object:
        return path.exists() and (not self._checked or self._contents(path))


class Steps:
    """The steps of one folder.

    Args:
        out: the folder; what lies in it is called by its place there, wherever the folder is.
        records: where their records are.
        ending: of the names of records, after that of the step.
        checked: an output with other contents than its step left is made again.
        overwrite: nothing that an earlier run made counts.
    """

    def __init__(
        self,
        out: Path,
        records: Path,
        *,
        ending: str = ".json",
        checked: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.out = out
        self.notes: dict[str, Mapping[str, Any]] = {}
        """What each step found, in the order in which they came."""
        self.seconds: dict[str, float | None] = {}
        """What each step took, in this run or the earlier one that made it."""
        self._records = records
        self._ending = ending
        self._checked = checked
        self._overwrite = overwrite
        self._hashes: dict[Path, str] = {}

    def once(
        self,
        name: str,
        make: Callable[[], Mapping[str, Any] | None],
        *,
        settings: Mapping[str, Any],
        inputs: Iterable[Path] = (),
        outputs: Iterable[Path] = (),
    ) -> Done:
        """Make a step unless it is done with the same settings and inputs.

        Args:
            name: of its record.
            make: the step; writes its outputs whole or not at all and returns what it found.
            settings: what else decides the outputs.
            inputs: files and folders; their order matters, and so does that of ``outputs``.
            outputs: what it leaves.

        Raises:
            UserError: an input does not exist.
        """
        outputs = list(outputs)
        made_from = {
            "settings": settings,
            "inputs": [(self._label(path), self.hash(path)) for path in inputs],
            "outputs": [self._label(path) for path in outputs],
        }

        def fresh() -> Mapping[str, Any] | None:
            found = make()
            for path in outputs:
                self._hashes.pop(path, None)
            return found

        record = self.record(name, made_from, outputs)
        done = record.earlier() or record.make(fresh)
        self.note(name, done)
        return done

    def record(
        self,
        name: str,
        made_from: Mapping[str, Any],
        outputs: Iterable[Path] = (),
        *,
        unique: bool = False,
    ) -> Record:
        """The record of a step."""
        return Record(
            self._records / f"{name}{self._ending}",
            made_from,
            outputs,
            contents=self.hash if self._checked else sha256,
            checked=self._checked,
            unique=unique,
            overwrite=self._overwrite,
        )

    def note(self, name: str, done: Done) -> None:
        """Keep what a step found, and what it took."""
        self.notes[name], self.seconds[name] = done.notes, done.seconds

    def hash(self, path: Path) -> str:
        """Return the SHA-256 of a file or folder, computed once a run.

        Raises:
            UserError: it does not exist.
        """
        if path not in self._hashes:
            if not path.exists():
                raise UserError(f"{path} does not exist")
            self._hashes[path] = sha256(path)
        return self._hashes[path]

    def _label(self, path: Path) -> str:
        inside = path.is_relative_to(self.out)
        return path.relative_to(self.out).as_posix() if inside else str(path)


def recorded(path: Path) -> Done | None:
    """Return the step that a record tells of, None if it is missing or damaged."""
    return _done(_read(path))


def digest(made_from: Mapping[str, Any]) -> str:
    """Return a short name for what a step is made from; the same contents have the same one."""
    return hashlib.sha256(json.dumps(_as_read(made_from), sort_keys=True).encode()).hexdigest()


def _as_read(values: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(values, default=str))


def _read(path: Path) -> dict[str, Any]:
    """A record's contents, nothing if it is missing or damaged: then the step is made again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _done(found: Mapping[str, Any]) -> Done | None:
    id_, noted = found.get("id"), found.get("notes")
    if not isinstance(id_, str) or not isinstance(noted, dict):
        return None
    return Done(id_, {k: v for k, v in noted.items() if k != "seconds"}, noted.get("seconds"))
