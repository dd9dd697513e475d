"""Steps that are done once: what each read, wrote and counted, kept so that a run can go on."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_whole
from hyptrans.support.progress import Stopwatch

_NAME = "journal.json"
_LOCK = "lock"


class Journal:
    """Runs the steps of one output folder, skipping those already done with the same input.

    A step counts as done when its settings and the hashes of its inputs are those of the earlier
    run, and the files it wrote are still there, byte for byte.
    """

    def __init__(self, out: Path, work: Path) -> None:
        self.out = out
        self.work = work
        self.stopwatch = Stopwatch()
        self.steps: list[dict[str, Any]] = []
        self.downloads: dict[str, str] = {}
        self._hashes: dict[Path, str] = {}
        work.mkdir(parents=True, exist_ok=True)
        self._lock = _take_lock(work / _LOCK, out)
        self._earlier: dict[str, Any] = _read(work / _NAME)

    def step(
        self,
        name: str,
        run: Callable[[], Mapping[str, Any]],
        *,
        settings: Mapping[str, Any],
        inputs: Iterable[Path],
        outputs: Iterable[Path],
    ) -> dict[str, Any]:
        """Run a step, or find that it was done before; return what it counted."""
        outputs = list(outputs)
        with self.stopwatch.measure(name):
            asked = {
                "settings": dict(settings),
                "inputs": {self._label(path): self.hash(path) for path in inputs},
            }
            key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
            entry = self._earlier.get(name)
            if entry is None or entry["key"] != key or not self._still_there(entry, outputs):
                counts = dict(run())
                for path in outputs:
                    self._hashes.pop(path, None)
                entry = {
                    "key": key,
                    "counts": counts,
                    "outputs": {self._label(path): self.hash(path) for path in outputs},
                }
                self._earlier[name] = entry
                write_whole(self.work / _NAME, json.dumps(self._earlier, indent=1))
        self.steps.append({"name": name, **entry["counts"]})
        counted: dict[str, Any] = entry["counts"]
        return counted

    def hash(self, path: Path) -> str:
        """Return the SHA-256 of a file or folder, computed once a run."""
        if path not in self._hashes:
            if not path.exists():
                raise UserError(f"{path} does not exist")
            self._hashes[path] = sha256(path)
        return self._hashes[path]

    def note_download(self, url: str, path: Path) -> None:
        """Remember a download and its hash for the manifest."""
        self.downloads[url] = self.hash(path)

    def close(self) -> None:
        """Let the next run have the folder."""
        os.close(self._lock)

    def _label(self, path: Path) -> str:
        # the output folder may be called anything, its files have the same names
        return path.relative_to(self.out).as_posix() if path.is_relative_to(self.out) else str(path)

    def _still_there(self, entry: dict[str, Any], outputs: list[Path]) -> bool:
        return all(
            path.exists() and entry["outputs"].get(self._label(path)) == self.hash(path)
            for path in outputs
        )


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path} is damaged ({error}); remove the folder {path.parent} and run again"
        ) from error
    return found


def _take_lock(path: Path, out: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        # the system gives the lock back when the process ends, however it ends
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UserError(f"another run is at work in {out}; wait for it or stop it") from error
    return descriptor
