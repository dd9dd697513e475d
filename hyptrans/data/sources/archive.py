"""Files out of a tar archive that nobody vouches for."""

import platform
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
"""More than any archive of a data set here unpacks to."""
_MOST_TIMES = 20
"""Unpacked against packed bytes: 3 to 4 in these archives."""
MOST_MEMBERS = 10_000
"""Archives of data sets here have some hundred; reading 100,000 empty ones takes seconds."""


def most_bytes(packed: int) -> int:
    """Return how many bytes may come out of an archive of ``packed`` ones."""
    return min(_MOST_BYTES, most_by_ratio(packed, _MOST_TIMES))


def unpack(archive: Path, wanted: Collection[str], folder: Path) -> dict[str, int]:
    """Write the regular files called ``wanted`` to ``folder``, without the folders they lie in.

    The archive is read to its end, so that a truncated one is noticed, and every member passes
    ``tarfile``'s filter for data before the folder appears.

    Raises:
        UserError: this Python lacks the filter; or not a tar archive, damaged or truncated, with
            a member that the filter refuses, with more than :data:`MOST_MEMBERS`, or one that
            unpacks to more than :func:`most_bytes`.
    """
    if not hasattr(tarfile, "data_filter"):
        raise UserError(
            f"Python {platform.python_version()} has no safe way to unpack {archive}: use a newer "
            "release, 3.10.12 or 3.11.4 at least, or unpack it and name the folder with --raw"
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
            # raises for a link, a device or a place elsewhere, wanted or not
            tarfile.data_filter(member, str(partial))
            name = PurePosixPath(member.name).name
            if member.isreg() and not member.issparse() and name in wanted:
                if (partial / name).exists():
                    raise _RefusedError(f"it holds {name} twice")
                tar.extract(member.replace(name=name), partial, filter="data")
                counts["unpacked"] += 1
            # tarfile keeps all that have gone by
            tar.members.clear()
    # to the checksum at the end of a gzip file
    while file.read(_BLOCK):
        pass
    return counts


class _RefusedError(Exception):
    """An archive that nobody should read any further."""


class _Bounded:
    """An unpacked archive of at most so many bytes, whose headers are short.

    ``tarfile`` reads all headers of a member at once, and only forward where none of them lies.
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
            raise _RefusedError("it has a member of less than no bytes")
        self._check(place)
        self._file.seek(place)

    def _check(self, place: int) -> None:
        # the last block may begin before the end
        if place > self._most + _BLOCK:
            raise _RefusedError(
                f"it unpacks to more than {self._most:,} bytes, suspiciously much; if you trust "
                "it, unpack it and name the folder with --raw"
            )
