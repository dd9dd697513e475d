"""Files that appear whole or not at all, their hashes, and transparent gzip."""

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """Write a file under another name, and give it its own when every byte is on disk.

    The folder is made if needed.

    Raises:
        OSError: the disk is full, for example.
        UserError: another process writes it now, or a link has the other name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    descriptor = take_lock(partial, path)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.truncate(0)  # an earlier run may have been killed
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
    """Lock a file, made if needed, for this process and those that inherit the descriptor.

    The system gives the lock back when all of them have ended, however they ended.

    Args:
        path: the file, in a folder that is there.
        place: what the lock is for, for the message.

    Returns:
        The descriptor, which the caller may close.

    Raises:
        UserError: another process has the lock, or the file is a link.
    """
    if path.is_symlink():
        raise UserError(f"{path} is a link, which nothing is written through: remove it")
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise UserError(f"another run is at work in {place}; wait for it or stop it") from error
        except OSError:
            return descriptor  # a file system without locks
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # who had the lock renamed or removed the file in between


def out_file(name: str) -> Path:
    """The ``type`` of an option ``--out FILE``: refused before any work is what no file can have.

    Raises:
        UserError: it is a folder.
    """
    path = Path(name)
    if path.is_dir():
        raise UserError(f"--out {path} is a folder, a file is needed: name one, in it if you like")
    return path


def out_folder(name: str) -> Path:
    """The ``type`` of an option ``--out DIR``: refused before any work is what no folder can have.

    Raises:
        UserError: it is a file.
    """
    path = Path(name)
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path} is a file, a folder is needed: name another")
    return path


def check_is_checkpoint(path: Path) -> None:
    """Raise UserError where there is no such file: before what reads it is imported."""
    if not path.is_file():
        raise UserError(f"checkpoint {path} is not a file: name one that fairseq-train wrote")


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, values: Mapping[str, Any] | list[Any]) -> None:
    """Write JSON, whole or not at all; what JSON has no word for, NaN or infinite, is null."""
    text = json.dumps(finite(values), indent=2, ensure_ascii=False) + "\n"
    with whole_file(path) as file:
        # names of files may hold bytes that are no UTF-8; JSON reads what stands for them
        file.write(text.encode(errors="backslashreplace"))


def read_json(text: str, *, unique: bool = False) -> dict[str, Any]:
    """Return the object that a text holds.

    Args:
        text: JSON.
        unique: refuse two fields of one name, of which other readers may take the other.

    Raises:
        ValueError: no JSON, no object, brackets in brackets without end, or fields of one name.
    """
    try:
        found = json.loads(text, object_pairs_hook=_unique if unique else None)
    except RecursionError as error:
        raise ValueError("its JSON has brackets in brackets without end") from error
    if not isinstance(found, dict):
        raise ValueError(f"its JSON is a {type(found).__name__}, not an object")
    return found


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("its JSON has two fields of one name")
    return found


def finite(value: Any) -> Any:
    """Values for JSON with None for numbers that it has no word for."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def remove(path: Path) -> None:
    """Remove a file or a folder that may not be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def put_in_place(new: Path, folder: Path) -> None:
    """Give a folder another name, even that of a folder which is there.

    The system exchanges both names in one step, so that whoever ends this process, and whenever,
    finds the former folder or the new one. The former one is then called ``new``.

    Raises:
        UserError: the file system has no such step.
    """
    try:
        new.rename(folder)  # takes the place of an empty folder, too
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
        failed = True  # an older system
    if failed:
        raise UserError(
            f"{other} is there already, and this file system cannot exchange two folders: remove "
            "it, or name another"
        )


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process is in this block with the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # some file systems lock no folders, or nothing
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_bytes(path: Path, most: int) -> bytes:
    """The bytes of a file that may be a stranger's.

    Raises:
        ValueError: there are more than ``most``, or it is no file but a device, say.
    """
    if not path.is_file():
        raise ValueError("it is no file")
    with open(path, "rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder, that of its sorted file names and their hashes."""
    if path.is_dir():
        digest = hashlib.sha256()
        for entry in sorted(entry for entry in path.rglob("*") if entry.is_file()):
            digest.update(f"{entry.relative_to(path).as_posix()}\0{sha256(entry)}\n".encode())
        return digest.hexdigest()
    # hashlib.file_digest is not in Python 3.10
    digest = hashlib.sha256()
    with open(path, "rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def open_maybe_gzip(path: Path) -> Iterator[BinaryIO]:
    """Open a plain or gzipped file for reading bytes, told apart by the first two bytes.

    Raises:
        UserError: the file is missing, a folder, a pipe, a device, or a damaged gzip file.
    """
    if not path.exists():
        raise UserError(f"{path} does not exist")
    if not path.is_file():
        # a pipe that nobody writes to, and a device, have no end
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
    """Of each path its last parts, as many as it takes to tell all apart."""
    parts = {path: Path(path).parts for path in paths}
    for count in range(1, max(map(len, parts.values()), default=0) + 1):
        ends = {path: Path(*own[-count:]).as_posix() for path, own in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return {path: path for path in parts}
