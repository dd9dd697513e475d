"""The steps of one output folder, each done once, so that a run can go on where one stopped."""

import os
import time
from pathlib import Path

from hyptrans.dataprep.sources.download import fetch
from hyptrans.support.errors import UserError
from hyptrans.support.files import remove
from hyptrans.support.records import Steps
from hyptrans_startup.files import take_lock

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


class Journal(Steps):
    """The steps of one output folder: each is done with the same files, byte for byte.

    Args:
        out: the output folder.
        work: folder of the journal, in it, where steps write.

    Raises:
        UserError: another run is at work there, or a link is in it.
    """

    def __init__(self, out: Path, work: Path) -> None:
        super().__init__(out, work / "steps", checked=True)
        self.work = work
        self.downloads: dict[str, str] = {}
        # steps write under names that anyone knows: a link leads to any file, a pipe has no end
        inside = (path for path in (work, *work.rglob("*")) if path.is_symlink() or path.exists())
        for path in inside:
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                kind = "a link" if path.is_symlink() else "a pipe or a device"
                raise UserError(f"{path} is {kind}, which no step writes through: remove it")
        self._made = not out.exists()
        work.mkdir(parents=True, exist_ok=True)
        self._lock = take_lock(work / _LOCK, out)

    def download(self, url: str, pin: str | None) -> Path:
        """Return the file behind a URL, fetched unless it is there, and note it."""
        start = time.perf_counter()
        path = fetch(url, self.out / "downloads", pin)
        spent = self.seconds.get("download") or 0.0
        self.seconds["download"] = spent + time.perf_counter() - start
        self.downloads[url] = self.hash(path)
        return path

    def close(self) -> None:
        """Let the next run have the folder, which goes where no step left anything in it."""
        if not any(self._records.glob("*")):
            remove_kept(self.work)
            if self._made and not any(self.out.iterdir()):
                self.out.rmdir()
        os.close(self._lock)
