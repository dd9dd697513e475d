"""Write files whole or not at all, hash them, and read gzip transparently."""

import contextlib
import ctypes
import errno
import fcntl
import gzip
import hashlib
import json
import math
import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hyptrans.support.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file under a temporary name, and rename it once every byte is on disk.

    The folder is created if needed.

    Raises:
        OSError: the disk is full, for example.
        UserError: another process is writing it, or the temporary name is a link.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    descriptor = take_lock(partial, path)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.truncate(0)  # a killed run may have left content
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def take_lock(path: Path, place: Path) -> int:
    """Lock a file, created if needed, for this process and those that inherit the descriptor.

    The system releases the lock when all of them have ended, however they ended, or when the caller
    closes the returned descriptor.

    Raises:
        UserError: another process holds the lock, which is for ``place``; or the file is a link.
    """
    if path.is_symlink():
        raise UserError(f"{path} is a link, and files are never written through one: remove it")
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise UserError(f"another run is at work in {place}; wait for it or stop it") from error
        except OSError:
            return descriptor  # the file system has no locks
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # the former holder of the lock renamed or removed the file


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, values: Mapping[str, Any] | list[Any]) -> None:
    """Write JSON, whole or not at all; NaN and infinities, which JSON lacks, become null."""
    text = json.dumps(finite(values), indent=2, ensure_ascii=False) + "\n"
    with whole_file(path) as file:
        # file names may contain bytes that are not UTF-8, which JSON reads from escapes
        file.write(text.encode(errors="backslashreplace"))


def read_json(text: str) -> dict[str, Any]:
    """Return the object in a JSON text.

    Raises:
        ValueError: the text is not JSON or not an object, or nests too deeply.
    """
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON nests brackets too deeply") from error
    if not isinstance(found, dict):
        raise ValueError(f"its JSON is a {type(found).__name__}, not an object")
    return found


def finite(value: Any) -> Any:
    """Return values for JSON, with None in place of NaN and infinities."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def remove(path: Path) -> None:
    """Remove a file or folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def put_in_place(new: Path, folder: Path) -> None:
    """Rename a folder, even to the name of an existing folder.

    The system exchanges both names in one step, so that a kill at any moment leaves either the
    former folder or the new one in place. The former one is then called ``new``.

    Raises:
        UserError: the file system cannot exchange names.
    """
    try:
        new.rename(folder)  # replaces an empty folder, too
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        _exchange(new, folder)


def _exchange(one: Path, other: Path) -> None:
    system, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(one), os.fsencode(other))
    here, exchange = -100, 2  # AT_FDCWD, and RENAME_EXCHANGE or RENAME_SWAP
    try:
        if sys.platform == "darwin":
            failed = system.renamex_np(*names, exchange)
        else:
            failed = system.renameat2(here, names[0], here, names[1], exchange)
    except AttributeError:
        failed = True  # the system is too old
    if failed:
        raise UserError(
            f"{other} already exists, and this file system cannot exchange two folders: remove "
            "it, or name another"
        )


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process is in this block for the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # some file systems cannot lock folders, or anything
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_bytes(path: Path, most: int) -> bytes:
    """Return the bytes of a file that may be untrusted.

    Raises:
        ValueError: it has more than ``most`` bytes, or is not a regular file, such as a device.
    """
    if not path.is_file():
        raise ValueError("it is not a regular file" if path.exists() else "it does not exist")
    with open(path, "rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, or that of a folder's sorted file names and their hashes."""
    digest = hashlib.sha256()
    if path.is_dir():
        for entry in sorted(entry for entry in path.rglob("*") if entry.is_file()):
            digest.update(f"{entry.relative_to(path).as_posix()}\0{sha256(entry)}\n".encode())
        return digest.hexdigest()
    # Python 3.10 lacks hashlib.file_digest
    with open(path, "rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def open_maybe_gzip(path: Path) -> Iterator[BinaryIO]:
    """Open a plain or gzipped file to read bytes; the first two bytes tell which it is.

    Raises:
        UserError: the file is missing, a folder, a pipe, a device, or a damaged gzip file.
    """
    if not path.exists():
        raise UserError(f"{path} does not exist")
    if not path.is_file():
        # a pipe without a writer and a device may have no end
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise UserError(f"{path} is {kind}, a file is needed")
    with open(path, "rb") as plain:
        zipped = plain.peek(2)[:2] == _GZIP_MAGIC
        if not zipped:
            yield plain
            return
        try:
            with gzip.open(plain, "rb") as unzipped:
                yield unzipped  # type: ignore[misc]  # GzipFile reads like any binary file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"{path} is a truncated or damaged gzip file ({error})") from error


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the last parts of each path, as many as are needed to distinguish all paths."""
    parts = {path: Path(path).parts for path in paths}
    for count in range(1, max(map(len, parts.values()), default=0) + 1):
        ends = {path: Path(*own[-count:]).as_posix() for path, own in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return {path: path for path in parts}
