"""One reader of checkpoints: container, pickle and storages in one pass over the bytes.

What comes out is plain: dictionaries, lists, tuples, texts, numbers, truth values, None, tensors on
the CPU, and `argparse.Namespace`. Nothing in the file is called, and no memory is taken that the
file has no bytes for.
"""

import io
import struct
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import Any, BinaryIO, NamedTuple

from hyptrans_startup.checkpoints import instructions
from hyptrans_startup.checkpoints.instructions import WIDTHS, Stored, Tensor

MOST_RECORDS = 50_000
"""Files in the zip; torch writes one for each storage."""
LARGEST_PICKLE = 1 << 26
"""Bytes of the pickle inside the zip, which has the names and options, not the numbers."""
BLOCK = 1 << 20
"""Bytes that are read in one go."""

_LEGACY = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""How torch's files begin that are no zip: a pickle of its magic number."""
_PROTOCOL = 1001
_END, _END_64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_LISTED, _LOCAL = struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
_IN_FULL = 0xFFFFFFFF
"""In place of a number that another field has in full."""
_EXTRA = struct.Struct("<2H")
_ENCRYPTED = 1
_BYTES_OF_A_NAME = 150
"""Of a file in the list, for names of ordinary length."""
_FULL_NUMBERS = 1
"""The extra field that has such numbers."""


class Record(NamedTuple):
    """A file inside the zip: where its header and its bytes begin, and how many these are."""

    header: int
    start: int
    size: int

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + self.size


def read(file: BinaryIO) -> Any:
    """Read a checkpoint that torch wrote, of today or, as a row of pickles, of before 1.6.

    Args:
        file: a file that can be read from any place; what it holds counts as it is found first.

    Raises:
        UnpicklingError: with ``GLOBAL module.name`` for a name that no checkpoint needs, else with
            what is wrong.
    """
    size = file.seek(0, 2)
    start = _bytes(file, 0, min(size, len(_LEGACY)))
    try:
        if start.startswith(b"PK"):
            return _read_zip(file, size)
        if start == _LEGACY:
            return _read_legacy(file, size)
    except (LookupError, TypeError, ValueError, struct.error) as error:
        raise UnpicklingError(f"{type(error).__name__}: {error}") from error
    raise UnpicklingError("not a file that torch writes")


def _read_zip(file: BinaryIO, size: int) -> Any:
    records = _records(file, size)
    folder = next(iter(records), "").partition("/")[0]
    order = records.get(f"{folder}/byteorder")
    if order is not None and _bytes(file, order.start, order.size) != b"little":
        raise UnpicklingError("its numbers are not little-endian")
    pickle = records.get(f"{folder}/data.pkl")
    if pickle is None or pickle.size > LARGEST_PICKLE:
        raise UnpicklingError("it has no pickle, or too large a one")
    value = instructions.load(io.BytesIO(_bytes(file, pickle.start, pickle.size)))

    def place(stored: Stored) -> int:
        record = records.get(f"{folder}/data/{stored.key}")
        if record is None or record.size < _size(stored):
            raise UnpicklingError("a tensor is larger than what the file has for it")
        return record.start

    return instructions.canonical(value, _maker(file, place))


def _read_legacy(file: BinaryIO, size: int) -> Any:
    """Behind the magic number: protocol, about the system, the checkpoint, keys, then storages."""
    file.seek(len(_LEGACY))
    stored: dict[str, Stored] = {}
    protocol, system, value, keys = (instructions.load(file, stored) for _ in range(4))
    little = isinstance(system, dict) and system.get("little_endian") is True
    if protocol != _PROTOCOL or not little:
        raise UnpicklingError("its numbers are not little-endian, or not as torch writes them")
    places: dict[str, int] = {}
    here = file.tell()
    for key in map(str, keys):
        if key in places or _bytes(file, here, 8) != struct.pack("<q", stored[key].elements):
            raise UnpicklingError("its storages are not those of its tensors")
        places[key] = here + 8
        here += 8 + _size(stored[key])
    if here > size:
        raise UnpicklingError("it is cut short")
    return instructions.canonical(value, _maker(file, lambda found: places[found.key]))


def _records(file: BinaryIO, size: int) -> dict[str, Record]:
    """The files in a zip, by name: stored as they are, whole, and none inside another."""
    first, length, end = _list(file, size)
    if first + length != end or length > MOST_RECORDS * _BYTES_OF_A_NAME:
        raise UnpicklingError("its list of files is not where it says, or too long")
    listed = _bytes(file, first, length)
    records: dict[str, Record] = {}
    here = 0
    while here < length:
        name, header, content, here = _listed(listed, here)
        local = _LOCAL.unpack(_bytes(file, header, _LOCAL.size))
        if local[0] != b"PK\3\4" or name in records:
            raise UnpicklingError("two files in it have one name, or one is not there")
        records[name] = Record(header, header + _LOCAL.size + sum(local[-2:]), content)
    places = sorted(records.values())
    limits = [record.header for record in places[1:]] + [first]
    if any(record.end > limit for record, limit in zip(places, limits, strict=False)):
        raise UnpicklingError("its files overlap")
    return records


def _list(file: BinaryIO, size: int) -> tuple[int, int, int]:
    """Place and bytes of the list of files in a zip, and the place where it has to end."""
    end = size - _END.size
    signature, *_, length, first, comment = _END.unpack(_bytes(file, max(end, 0), _END.size))
    if signature != b"PK\5\6" or comment:
        raise UnpicklingError("the zip is cut short, or something follows it")
    before = end - _LOCATOR_64.size - _END_64.size
    if before < 0:
        return first, length, end
    found = _bytes(file, before, end - before)
    locator = _LOCATOR_64.unpack(found[_END_64.size :])
    if locator[0] != b"PK\6\7":
        return first, length, end
    # the numbers in full, which are too large for the end of the zip at times
    start, *_, full_length, full_first = _END_64.unpack(found[: _END_64.size])
    if start != b"PK\6\6" or locator[2] != before:
        raise UnpicklingError("it has two lists of files")
    return full_first, full_length, before


def _listed(listed: bytes, here: int) -> tuple[str, int, int, int]:
    """Of one file in the list: its name, place and bytes, and where the next one begins."""
    fields = _LISTED.unpack_from(listed, here)
    signature, flags, method = fields[0], fields[3], fields[4]
    numbers = {"size": fields[9], "stored": fields[8], "place": fields[16]}
    names = here + _LISTED.size
    extras = names + fields[10]
    behind = extras + fields[11] + fields[12]
    for name, value in _full_numbers(listed[extras : extras + fields[11]], numbers):
        numbers[name] = value
    if signature != b"PK\1\2" or behind > len(listed):
        raise UnpicklingError("its list of files is cut short")
    # torch stores what it writes as it is
    if method or flags & _ENCRYPTED or numbers["size"] != numbers["stored"]:
        raise UnpicklingError("it is compressed")
    return listed[names:extras].decode("ascii"), numbers["place"], numbers["size"], behind


def _full_numbers(extra: bytes, numbers: dict[str, int]) -> Iterator[tuple[str, int]]:
    """What an extra field has in full of the numbers that were too large for their places."""
    while len(extra) >= _EXTRA.size:
        kind, length = _EXTRA.unpack_from(extra)
        content, extra = extra[_EXTRA.size :][:length], extra[_EXTRA.size + length :]
        if kind == _FULL_NUMBERS:
            large = [name for name, value in numbers.items() if value == _IN_FULL]
            yield from zip(
                large, (one for (one,) in struct.iter_unpack("<Q", content)), strict=False
            )


def _size(stored: Stored) -> int:
    """Bytes of a storage."""
    return stored.elements * WIDTHS[stored.dtype]


def _maker(file: BinaryIO, place: Callable[[Stored], int]) -> Callable[[Tensor], Any]:
    """Return what makes tensors; those of one storage share its memory, as in the file."""
    storages: dict[str, Any] = {}

    def make(description: Tensor) -> Any:
        # slow to import, and of no use to commands that only name what is here
        import torch

        stored = description.stored
        if stored.key not in storages:
            start = place(stored)
            storages[stored.key] = torch.UntypedStorage(_size(stored))
            content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storages[stored.key])
            _fill(file, start, content.numpy().data)
        empty = torch.empty(0, dtype=getattr(torch, stored.dtype), device="cpu")
        return empty.set_(
            storages[stored.key], description.offset, description.sizes, description.strides
        )

    return make


def _fill(file: BinaryIO, start: int, content: memoryview) -> None:
    file.seek(start)
    done = 0
    while done < len(content):
        count = file.readinto(content[done : done + BLOCK])  # type: ignore[attr-defined]
        if not count:
            raise UnpicklingError("it is cut short")
        done += count


def _bytes(file: BinaryIO, start: int, count: int) -> bytes:
    file.seek(start)
    found = file.read(count)
    if len(found) < count:
        raise UnpicklingError("it is cut short")
    return found
