"""What an archive may do to the disk, the memory and the time of who unpacks it."""

import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hyptrans.support.errors import UserError
from hyptrans.support.lines import most_by_ratio

_GIGABYTE = 1 << 30
MOST_GIGABYTES = 20
"""More than any archive of a data set here unpacks to."""
MOST_MEMBERS = 10_000
LARGEST_HEADER = 1 << 20
"""Bytes that say something of the next member, such as a long name."""
MOST_HEADERS = 8
"""Headers in a row that belong to one member."""

_ABOUT_THE_NEXT = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


@dataclass(frozen=True)
class Limits:
    """How much may come out of an archive.

    Attributes:
        gigabytes: of all that is in it, None for the default, with which the ratio of unpacked to
            packed bytes is limited too.
    """

    gigabytes: float | None = None

    def most_bytes(self, packed: int) -> int:
        """Return how many bytes may come out of ``packed`` ones."""
        if self.gigabytes is not None:
            return int(self.gigabytes * _GIGABYTE)
        return min(MOST_GIGABYTES * _GIGABYTE, most_by_ratio(packed))

    def refusal(self, archive: Path) -> UserError:
        """Return the error for an archive that unpacks to too much."""
        most = self.most_bytes(archive.stat().st_size) / _GIGABYTE
        return UserError(
            f"{archive} is refused: it unpacks to more than {most:.3g} GB, suspiciously much; if "
            "you trust it, allow more with --max-unpacked"
        )


DEFAULT = Limits()


class TarGuard:
    """A tar stream that is looked at, header by header, before ``tarfile`` acts on it.

    ``tarfile`` reads a header that describes the next member whole, and the headers of one member
    by calling itself.

    Args:
        file: the unpacked stream.
        archive: its file, for messages.
        limits: how much may come out.

    Raises:
        UserError: by ``read``, for what no archive of a data set has.
    """

    def __init__(self, file: BinaryIO, archive: Path, limits: Limits) -> None:
        self._file = file
        self._archive = archive
        self._limits = limits
        self._left = limits.most_bytes(archive.stat().st_size)
        self._header = bytearray()
        self._skip = 0
        self._extended = bytearray()
        self._in_a_row = 0
        self._members = 0
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Read like a file, and look at the headers in what is read."""
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise self._limits.refusal(self._archive)
        place = 0
        while place < len(data) and not self._ended:
            if self._skip:
                step = min(self._skip, len(data) - place)
                if self._in_a_row:
                    self._extended += data[place : place + step]
                self._skip -= step
            else:
                step = min(tarfile.BLOCKSIZE - len(self._header), len(data) - place)
                self._header += data[place : place + step]
                if len(self._header) == tarfile.BLOCKSIZE:
                    self._look(bytes(self._header))
                    self._header.clear()
            place += step
        return data

    def _look(self, block: bytes) -> None:
        try:
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            # the end, or damage that tarfile tells of
            self._ended = True
            return
        if member.size < 0 or member.type == tarfile.GNUTYPE_SPARSE:
            raise self._refuse("has a member with holes, or of less than no bytes")
        if b" size=" in self._extended or b" GNU.sparse" in self._extended:
            raise self._refuse("has a member of another size than it says")
        self._extended.clear()
        if member.type in _ABOUT_THE_NEXT:
            self._in_a_row += 1
            if member.size > LARGEST_HEADER or self._in_a_row > MOST_HEADERS:
                raise self._refuse("has headers without end")
        else:
            self._in_a_row = 0
            self._members += 1
            if self._members > MOST_MEMBERS:
                raise self._refuse(f"has more than {MOST_MEMBERS} members")
        if member.size > self._left and member.isreg():
            raise self._limits.refusal(self._archive)
        if member.isreg() or member.type not in tarfile.SUPPORTED_TYPES or self._in_a_row:
            self._skip = -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE

    def _refuse(self, problem: str) -> UserError:
        return UserError(f"{self._archive} is refused: it {problem}, as no data set has")
