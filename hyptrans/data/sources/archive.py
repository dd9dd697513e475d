"""Extract files from an untrusted tar archive."""

import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hyptrans.support.errors import UserError
from hyptrans.support.files import open_maybe_gzip, remove, sync_folder
from hyptrans.support.lines import most_by_ratio

_BLOCK = 1 << 20
_MOST_BYTES = 20 << 30
"""A limit above the unpacked size of every archive of a data set here."""
_MOST_TIMES = 20
"""Largest ratio of unpacked to packed bytes; these archives have 3 to 4."""
MOST_MEMBERS = 10_000
"""The data sets' archives have a few hundred; reading 100,000 empty ones takes seconds."""


def most_bytes(packed: int) -> int:
    """Return how many bytes an archive of ``packed`` bytes may unpack to."""
    return min(_MOST_BYTES, most_by_ratio(packed, _MOST_TIMES))


def unpack(archive: Path, wanted: Collection[str], folder: Path) -> dict[str, int]:
    """Write the regular files named in ``wanted`` to ``folder``, without their parent folders.

    The archive is read to its end, to notice truncation, and every member passes ``tarfile``'s
    data filter before the folder appears.

    Raises:
        UserError: the file is not a tar archive, is damaged or truncated, has a member that the
            filter refuses, has more than :data:`MOST_MEMBERS` members, or unpacks to more than
            :func:`most_bytes`; or this Python lacks the filter.
    """
    if not hasattr(tarfile, "data_filter"):
        raise UserError(
            f"{archive} needs tarfile's data filter, which Python has from 3.10.12 and 3.11.4 on: "
            "update Python, or unpack it and name the folder with --raw"
        )
    partial = folder.with_name(folder.name + ".partial")
    remove(partial)
    partial.mkdir(parents=True)
    try:
        with open_maybe_gzip(archive) as opened:
            most = most_bytes(archive.stat().st_size)
            counts = _unpack(_Bounded(opened, most), wanted, partial)
        remove(folder)
        partial.rename(folder)
    except tarfile.FilterError as error:
        raise UserError(f"{archive} is refused: its member {error}") from error
    except _RefusedError as error:
        raise UserError(f"{archive} is refused: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise UserError(
            f"{archive} is not a tar archive, or it is truncated or damaged ({error})"
        ) from error
    finally:
        remove(partial)
    sync_folder(folder.parent)
    return counts


def _unpack(file: "_Bounded", wanted: Collection[str], partial: Path) -> dict[str, int]:
    counts = {"members": 0, "unpacked": 0}
    with tarfile.open(fileobj=file, mode="r:") as tar:  # type: ignore[call-overload]  # reads only
        for member in tar:
            counts["members"] += 1
            if counts["members"] > MOST_MEMBERS:
                raise _RefusedError(f"it has more than {MOST_MEMBERS:,} members")
            # raises for a link, a device or a path outside, wanted or not
            tarfile.data_filter(member, str(partial))
            name = PurePosixPath(member.name).name
            if member.isreg() and not member.issparse() and name in wanted:
                if (partial / name).exists():
                    raise _RefusedError(f"it holds {name} twice")
                tar.extract(member.replace(name=name), partial, filter="data")
                counts["unpacked"] += 1
            # tarfile keeps every member that it has read
            tar.members.clear()
    # read up to the checksum at the end of a gzip file
    while file.read(_BLOCK):
        pass
    return counts


class _RefusedError(Exception):
    """Raised for an archive that must not be read any further."""


class _Bounded:
    """An unpacked archive with a bounded number of bytes and short headers.

    ``tarfile`` reads all headers of a member at once, and seeks only forward unless a header lies.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self.tell = file.tell
        self._file, self._most = file, most

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise _RefusedError("it has headers without end")
        self._check(self.tell() + size)
        return self._file.read(size)

    def seek(self, place: int) -> None:
        if place < self.tell():
            raise _RefusedError("it has a member of negative size")
        self._check(place)
        self._file.seek(place)

    def _check(self, place: int) -> None:
        # the last block may begin before the end
        if place > self._most + _BLOCK:
            raise _RefusedError(
                f"it unpacks to more than {self._most:,} bytes, suspiciously much; if you trust "
                "it, unpack it and name the folder with --raw"
            )
