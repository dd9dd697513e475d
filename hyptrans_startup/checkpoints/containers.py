"""The file around a checkpoint's pickle: a zip of torch's, or the older row of pickles."""

import io
import struct
import zipfile
from pickle import UnpicklingError
from typing import BinaryIO

from hyptrans_startup.checkpoints.pickles import check_pickle

MOST_RECORDS = 50_000
"""Files in the zip; torch writes one for each tensor."""
LARGEST_PICKLE = 1 << 26
"""Bytes of the pickle inside the zip, which has the names and options, not the numbers."""

_LEGACY = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""How torch's files begin that are no zip: a pickle of its magic number."""
_ENTRY = 150
"""Bytes that a file takes in the list at the end of the zip, names of ordinary length."""
_END_OF_ZIP = struct.Struct("<4s4H2LH")
_END_OF_ZIP_64, _LOCATOR_64 = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
"""What torch writes before it, for large files and small ones."""
_IN_FULL = 0xFFFFFFFF
"""In place of a number that is there in full."""


def check_container(file: BinaryIO) -> None:
    """Raise for a file that takes more memory or time to read than its size accounts for.

    Args:
        file: a seekable file, left at its beginning.

    Raises:
        UnpicklingError: what is wrong with it.
    """
    start = file.read(len(_LEGACY))
    file.seek(0)
    try:
        if start.startswith(b"PK"):
            _check_zip(file)
        elif start == _LEGACY:
            _check_legacy(file)
        else:
            raise UnpicklingError("not a file that torch writes")
    except (zipfile.BadZipFile, ValueError, LookupError, TypeError, NotImplementedError) as error:
        raise UnpicklingError(f"{type(error).__name__}: {error}") from error
    file.seek(0)


def _check_zip(file: BinaryIO) -> None:
    size = file.seek(0, 2)
    file.seek(max(size - _END_OF_ZIP.size, 0))
    end = file.read(_END_OF_ZIP.size)
    # so that this and torch's reader find the same list of files
    if len(end) < _END_OF_ZIP.size or not end.startswith(b"PK\5\6"):
        raise UnpicklingError("the zip is cut short, or something follows it")
    directory, offset = _END_OF_ZIP.unpack(end)[5:7]
    if directory > MOST_RECORDS * _ENTRY:
        raise UnpicklingError("more files in it than a checkpoint has")
    _check_list(file, size, (directory, offset))
    with zipfile.ZipFile(file) as archive:
        records = archive.infolist()
        _check_records(records, size)
        # torch takes the folder of the first, and finds the pickle in it without regard to case
        folder = records[0].filename.partition("/")[0] + "/"
        pickles = [one for one in records if one.filename.lower().endswith("/data.pkl")]
        if [one.filename for one in pickles] != [folder + "data.pkl"]:
            raise UnpicklingError("it has no pickle, or more than one")
        if pickles[0].file_size > LARGEST_PICKLE:
            raise UnpicklingError("it has too large a pickle")
        prefix = folder + "data/"
        sizes = {
            record.filename.removeprefix(prefix): record.file_size
            for record in records
            if record.filename.startswith(prefix)
        }
        pickle = io.BytesIO(archive.read(pickles[0]))
        check_pickle(pickle, lambda key, needed: sizes.get(key, -1) >= needed)


def _check_list(file: BinaryIO, size: int, told: tuple[int, int]) -> None:
    """Raise where the list of files is not right before the end of the zip.

    Python looks for it there, and torch where the end says.

    Args:
        file: the zip.
        size: of the file.
        told: bytes of the list and its place, as the end of the zip has them.
    """
    end = size - _END_OF_ZIP.size
    first = max(end - _LOCATOR_64.size - _END_OF_ZIP_64.size, 0)
    file.seek(first)
    found = file.read(end - first)
    if found[-_LOCATOR_64.size :].startswith(b"PK\6\7"):
        # the numbers in full, which are too large for the end of the zip at times
        place = _LOCATOR_64.unpack(found[-_LOCATOR_64.size :])[2]
        start, *_, length, offset = _END_OF_ZIP_64.unpack(found[: _END_OF_ZIP_64.size])
        full = (length, offset)
        same = all(one in (other, _IN_FULL) for one, other in zip(told, full, strict=True))
        if place != first or start != b"PK\6\6" or not same:
            raise UnpicklingError("it has two lists of files")
        end, told = first, full
    if sum(told) != end:
        raise UnpicklingError("its list of files is not where it says")


def _check_records(records: list[zipfile.ZipInfo], size: int) -> None:
    if len(records) > MOST_RECORDS:
        raise UnpicklingError("more files in it than a checkpoint has")
    # torch's reader finds names without regard to case
    if len({record.filename.lower() for record in records}) < len(records):
        raise UnpicklingError("two files in it have one name")
    # torch stores what it writes as it is
    if any(record.compress_type != zipfile.ZIP_STORED for record in records):
        raise UnpicklingError("it is compressed")
    if any(record.file_size != record.compress_size for record in records):
        raise UnpicklingError("its sizes do not add up")
    if sum(record.file_size for record in records) > size:
        raise UnpicklingError("its files overlap")


def _check_legacy(file: BinaryIO) -> None:
    size = file.seek(0, 2)
    file.seek(len(_LEGACY))
    claimed: dict[str, int] = {}

    def holds(key: str, needed: int) -> bool:
        claimed[key] = max(needed, claimed.get(key, 0))
        return claimed[key] <= size and len(claimed) <= MOST_RECORDS

    # behind the magic number: protocol, about the system, the checkpoint, keys of the storages
    for _ in range(4):
        check_pickle(file, holds)
    if sum(claimed.values()) > size:
        raise UnpicklingError("a tensor is larger than what the file has for it")
