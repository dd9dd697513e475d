"""Files that appear whole or not at all, each written by one process at a time."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hyptrans_startup.errors import UserError

_PARTIAL = ".partial"


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write ``path`` under another name and rename it only when every byte is on disk.

    Raises:
        OSError: the folder does not exist, or the disk is full.
        UserError: another process writes it now, or a link has the other name.
    """
    partial = path.with_name(path.name + _PARTIAL)
    lock = take_lock(partial, path)
    try:
        with open(partial, "wb", opener=_open_itself) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        # once it is renamed, the name may be another process's
        if _is(partial, lock):
            partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(lock)
    sync_folder(path.parent)


def take_lock(path: Path, place: Path) -> int:
    """Lock a file, made if needed, for this process and those that inherit the descriptor.

    The system gives the lock back when all of them have ended, however they ended.

    Args:
        path: the file, in a folder that is there.
        place: what is locked by it, for the message.

    Returns:
        The descriptor, which the caller may close.

    Raises:
        UserError: another process has the lock, or the file is a link.
    """
    while True:
        descriptor = _open_itself(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise UserError(f"another run is at work in {place}; wait for it or stop it") from error
        except OSError:
            # a file system without locks
            return descriptor
        if _is(path, descriptor):
            return descriptor
        # who had it has removed the file in between
        os.close(descriptor)


def _open_itself(path: str | os.PathLike[str], flags: int) -> int:
    """Open what has a name itself, never what a link leads to, which may be anybody's.

    Raises:
        UserError: it is a link.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and os.path.islink(path):
            raise UserError(
                f"{path} is a link, which nothing is written through: remove it"
            ) from error
        raise


def _is(path: Path, descriptor: int) -> bool:
    """Whether a name is still that of an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
