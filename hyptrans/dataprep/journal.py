"""The steps of one output folder, each done once, so that a run can go on where one stopped."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import remove, sha256, take_lock
from hyptrans.support.progress import Stopwatch
from hyptrans.support.steps import Record

_RECORDS = "steps"
_LOCK = "lock"


def is_kept_in(work: Path) -> bool:
    """Whether a folder is that of a journal, which has it for itself."""
    return (work / _LOCK).is_file() and not work.is_symlink()


def remove_kept(work: Path) -> None:
    """Remove the folder of a journal; one of the same name that is another's stays."""
    if is_kept_in(work):
        # the lock last: what is left when this is stopped is still a journal's
        for path in work.iterdir():
            if path.name != _LOCK:
                remove(path)
        remove(work)


def remove_left(work: Path) -> None:
    """:func:`remove_kept` what a run has left; the folder of one that is at work stays."""
    if not is_kept_in(work):
        return
    try:
        lock = take_lock(work / _LOCK, work)
    except UserError:
        return
    try:
        remove_kept(work)
    finally:
        os.close(lock)


class Journal:
    """Runs the steps of one output folder, skipping those already done with the same input.

    A step counts as done when its settings and the hashes of its inputs are those of the earlier
    run, and the files it wrote are still there, byte for byte.

    Args:
        out: the output folder.
        work: folder of the journal, in it, where steps write.

    Raises:
        UserError: another run is at work there, or a link is in it.
    """

    def __init__(self, out: Path, work: Path) -> None:
        self.out = out
        self.work = work
        self.stopwatch = Stopwatch()
        self.steps: list[dict[str, Any]] = []
        self.downloads: dict[str, str] = {}
        self._hashes: dict[Path, str] = {}
        # steps write under names that anyone knows, and a link leads to any file
        if link := next((path for path in (work, *work.rglob("*")) if path.is_symlink()), None):
            raise UserError(f"{link} is a link, which no step writes through: remove it")
        work.mkdir(parents=True, exist_ok=True)
        self._lock = take_lock(work / _LOCK, out)

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

        def fresh() -> Mapping[str, Any]:
            counts = run()
            for path in outputs:
                self._hashes.pop(path, None)
            return counts

        with self.stopwatch.measure(name):
            # in their order: the first file is the source, and so is the first output
            made_from = {
                "settings": settings,
                "inputs": [(self._label(path), self.hash(path)) for path in inputs],
                "outputs": [self._label(path) for path in outputs],
            }
            record = Record(
                self.work / _RECORDS / f"{name}.json",
                made_from,
                outputs,
                mark=lambda path: path.exists() and self.hash(path),
            )
            done = record.earlier() or record.make(fresh)
        self.steps.append({"name": name, **done.notes})
        return done.notes

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
