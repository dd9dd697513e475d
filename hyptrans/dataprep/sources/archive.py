"""Files out of a tar archive that nobody vouches for."""

import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hyptrans.support.errors import UserError
from hyptrans.support.files import open_maybe_gzip, remove, whole_file
from hyptrans.support.lines import most_by_ratio
from hyptrans_startup.files import sync_folder

_BLOCK = 1 << 20
_GIGABYTE = 1 << 30
MOST_GIGABYTES = 20
"""More than any archive of a data set here unpacks to."""
MOST_OF_HEADERS = 4 << 20
"""Bytes of all headers of an archive; 512 a member suffice where names are short."""


def most_bytes(packed: int, gigabytes: float | None = None) -> int:
    """Return how many bytes may come out of ``packed`` ones.

    Args:
        packed: bytes of the archive.
        gigabytes: as many as the user allows; None for ``MOST_GIGABYTES``, with which the ratio of
            unpacked to packed bytes is limited too.
    """
    if gigabytes is not None:
        return int(gigabytes * _GIGABYTE)
    return min(MOST_GIGABYTES * _GIGABYTE, most_by_ratio(packed))


def unpack(
    archive: Path, wanted: Collection[str], folder: Path, gigabytes: float | None = None
) -> dict[str, int]:
    """Write the regular files called ``wanted`` to ``folder``, without the folders they lie in.

    The archive is read to its end, so that a truncated one is noticed, and every member is looked
    at before anything is kept: one that would leave the folder spoils the whole archive.

    Raises:
        UserError: not a tar archive, damaged, truncated, or with a member that is absolute,
            has ``..``, or is neither a file nor a folder, or that unpacks to more than
            :func:`most_bytes`.
    """
    partial = folder.with_name(folder.name + ".partial")
    remove(partial)
    partial.mkdir(parents=True)
    try:
        # one pass: a second one would decompress gigabytes again
        with open_maybe_gzip(archive) as opened:
            counts = _unpack(_Unpacked(opened, archive, gigabytes), wanted, partial)
    except (tarfile.TarError, EOFError, zlib.error, ValueError, RecursionError) as error:
        remove(partial)
        raise UserError(
            f"{archive} is not a tar archive, or it is truncated or damaged ({error})"
        ) from error
    except BaseException:
        remove(partial)
        raise
    remove(folder)
    partial.rename(folder)
    sync_folder(folder.parent)
    return counts


class _Unpacked:
    """The unpacked archive as ``tarfile`` may read it: headers alone, and only forward.

    ``tarfile`` reads all headers of a member, however long and many, before it tells of it.

    Args:
        file: the unpacked stream.
        archive: its file, for messages.
        gigabytes: as in :func:`most_bytes`.
    """

    def __init__(self, file: BinaryIO, archive: Path, gigabytes: float | None) -> None:
        self.archive = archive
        self.tell = file.tell
        self._file = file
        self._most = most_bytes(archive.stat().st_size, gigabytes)
        self._headers = MOST_OF_HEADERS

    def read(self, size: int) -> bytes:
        """Read a header.

        Raises:
            UserError: there are too many, or of less than no bytes.
        """
        if not 0 <= size <= self._headers:
            raise self.refusal("it has headers without end, as no data set has")
        self._headers -= size
        return self._file.read(size)

    def seek(self, place: int) -> None:
        """Go forward.

        Raises:
            UserError: a member has less than no bytes, or all together have too many.
        """
        if place < self.tell():
            raise self.refusal("it has a member of less than no bytes")
        self._check(place)
        self._file.seek(place)

    def copy(self, size: int, path: Path) -> int:
        """Write the next bytes to a file, and return how many of them were there.

        Raises:
            UserError: there would be too many.
        """
        self._check(self.tell() + size)
        with whole_file(path) as file:
            left = size
            while left and (block := self._file.read(min(left, _BLOCK))):
                file.write(block)
                left -= len(block)
        return size - left

    def finish(self) -> None:
        """Read to the checksum at the end of a gzip file."""
        while self._file.read(_BLOCK):
            self._check(self.tell())

    def _check(self, place: int) -> None:
        if place > self._most:
            raise self.refusal(
                f"it unpacks to more than {self._most / _GIGABYTE:.3g} GB, suspiciously much; if "
                "you trust it, allow more with --max-unpacked"
            )

    def refusal(self, problem: str) -> UserError:
        """The error for an archive that is not read any further."""
        return UserError(f"{self.archive} is refused: {problem}")


def _unpack(file: _Unpacked, wanted: Collection[str], partial: Path) -> dict[str, int]:
    counts = {"members": 0, "unpacked": 0}
    with tarfile.open(fileobj=file, mode="r:") as tar:  # type: ignore[call-overload]  # reads only
        for member in tar:
            counts["members"] += 1
            _refuse_bad(file, member)
            name = PurePosixPath(member.name).name
            if member.isfile() and name in wanted:
                if (partial / name).exists():
                    raise file.refusal(f"it holds {name} twice")
                if file.copy(member.size, partial / name) < member.size:
                    raise UserError(f"{file.archive} is truncated inside {member.name!r}")
                counts["unpacked"] += 1
            # tarfile keeps all that have gone by
            tar.members.clear()
    file.finish()
    return counts


def _refuse_bad(file: _Unpacked, member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        problem = "points outside the folder"
    elif not (member.isfile() or member.isdir()) or member.issparse():
        problem = "is a link, a device or has holes"
    elif member.size < 0 or "size" in member.pax_headers:
        problem = "has another size than it says"
    else:
        return
    raise file.refusal(f"its member {member.name!r} {problem}")
