"""The two files of a binarized text: an index of sentences, and their words as numbers.

fairseq believes both, maps them into memory and looks words up by number, without a check.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import before

AGAIN = "write the data folder again with fairseq-preprocess"
BLOCK = 1 << 20
"""Sentences, or words, that are looked at in one go."""

MAGIC = {b"MMIDIDX\0\0": "mmap", b"TNTIDX\0\0": "lazy"}
"""What an index begins with, and the ``--dataset-impl`` that writes it."""
SAME_FILES = {"cached": "lazy"}
"""Another name under which ``--dataset-impl`` reads the files of one."""
HUFFMAN = b"HUFFIDX\0\0"
"""fairseq's reader of it calls a function that bitarray has dropped."""
VERSION = 1


class Damage(Exception):
    """What is wrong with the files of a set, as a clause."""


@before
def half_written_files(path: str, *_: Any, **__: Any) -> None:
    """``frombuffer`` and ``__del__`` tracebacks for a set that was cut short."""
    check(path)


@before
def half_written_data(
    path: str, impl: Any, fix_lua_indexing: bool = False, dictionary: Any = None
) -> None:
    """``mmap`` tracebacks for a set that was cut short, and words that no dictionary has."""
    found, asked = check(path), SAME_FILES.get(str(impl), str(impl))
    if found is None:
        return
    if asked not in (found, "raw"):
        raise UserError(
            f"{path}.idx was written with --dataset-impl {found} and is read with {impl}: "
            "leave --dataset-impl out, and the file says it"
        )
    if dictionary is not None:
        try:
            words_known(path, len(dictionary), fix_lua_indexing)
        except Damage as reason:
            raise UserError(
                f"{path}.* does not go with its dictionary ({reason}); {AGAIN}"
            ) from None


def check(path: str) -> str | None:
    """Return which ``--dataset-impl`` wrote the two files of a set, None where there are none.

    Raises:
        UserError: they are damaged.
    """
    index, data = Path(path + ".idx"), Path(path + ".bin")
    try:
        if index.exists() != data.exists():
            raise Damage(f"{(data if index.exists() else index).name} is missing")
        if not index.exists():
            return None
        for file in (index, data):
            if not file.is_file():
                raise Damage(f"{file.name} is no regular file")
        impl, begin = kind(index)
        CHECKS[impl](index, begin, data)
        return impl
    except Damage as reason:
        raise UserError(f"{path}.* is damaged or half written ({reason}); {AGAIN}") from None


def kind(index: Path) -> tuple[str, int]:
    """Return which ``--dataset-impl`` wrote an index, and at which byte its content begins."""
    with index.open("rb") as file:
        start = file.read(max(map(len, MAGIC)) + 8)
    if start.startswith(HUFFMAN):
        raise Damage(f"{index.name} is of --dataset-impl huffman, which is not read")
    for magic, impl in MAGIC.items():
        begin = len(magic) + 8
        if magic.startswith(start) or (start.startswith(magic) and len(start) < begin):
            raise Damage(f"{index.name} is cut short")
        if start.startswith(magic):
            version = int.from_bytes(start[len(magic) : begin], "little")
            if version != VERSION:
                raise Damage(f"{index.name} has the unknown version {version}")
            return impl, begin
    raise Damage(f"{index.name} is no index of fairseq")


def fields(index: Path, begin: int, layout: str) -> tuple[int, ...]:
    """Return the numbers of a ``struct`` layout that begin at a byte."""
    with index.open("rb") as file:
        file.seek(begin)
        packed = file.read(struct.calcsize(layout))
    if len(packed) < struct.calcsize(layout):
        raise Damage(f"{index.name} is cut short")
    return struct.unpack(layout, packed)


def integers(index: Path, code: int) -> np.dtype[Any]:
    """Return the type of the words' numbers, which fairseq stores as a code."""
    from fairseq.data.indexed_dataset import _code_to_dtype as types

    if code not in types or np.dtype(types[code]).kind not in "iu":
        raise Damage(f"{index.name} has an unknown type of numbers, {code}")
    return np.dtype(types[code])


def some_sentences(index: Path, count: int, needed: int) -> None:
    """Hold the number of sentences, and the bytes that they need, against the file."""
    if count == 0:
        raise Damage(f"{index.name} has no sentences")
    if index.stat().st_size < needed:
        raise Damage(f"{index.name} is cut short")


def exactly(data: Path, size: int) -> None:
    """Hold the bytes that an index speaks of against the other file."""
    found = data.stat().st_size
    if found != size:
        raise Damage(f"{data.name} {'is cut short' if found < size else 'is not of its index'}")
    if not size:
        raise Damage(f"{data.name} has no words")


def outside(index: Path) -> Damage:
    """Return what is said of positions and sizes that do not go together."""
    return Damage(f"{index.name} points inside or outside of its sentences")


def check_mmap(index: Path, begin: int, data: Path) -> None:
    """Sentences follow each other without gaps; sizes are in words, positions in bytes."""
    code, count = fields(index, begin, "<BQ")
    width = integers(index, code).itemsize
    begin += struct.calcsize("<BQ")
    some_sentences(index, count, begin + 12 * count)
    end = 0
    for sizes, positions in sentences(index, begin, count):
        ends = end + np.cumsum(sizes.astype(np.int64) * width)
        if positions[0] != end or (positions[1:] != ends[:-1]).any():
            raise outside(index)
        end = int(ends[-1])
    exactly(data, end)


def sentences(index: Path, begin: int, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield sizes and positions of sentences: all sizes (int32) stand before them (int64)."""
    for start in range(0, count, BLOCK):
        some = min(BLOCK, count - start)
        sizes = np.fromfile(index, "<i4", some, offset=begin + 4 * start)
        if (sizes < 0).any():
            raise Damage(f"{index.name} has a sentence of less than no words")
        yield sizes, np.fromfile(index, "<i8", some, offset=begin + 4 * count + 8 * start)


def check_lazy(index: Path, begin: int, data: Path) -> None:
    """Of the older format: where sizes and words of a sentence are, then the sizes."""
    code, width, count, dimensions = fields(index, begin, "<QQQQ")
    if integers(index, code).itemsize != width:
        raise Damage(f"{index.name} has numbers of {width} bytes, which its type has not")
    begin += struct.calcsize("<QQQQ")
    some_sentences(index, count, begin + 8 * (2 * (count + 1) + dimensions))
    numbers = np.fromfile(index, "<i8", 2 * (count + 1) + dimensions, offset=begin)
    places, starts, sizes = np.split(numbers, [count + 1, 2 * (count + 1)])
    one_each = dimensions == count and (places == np.arange(count + 1)).all()
    if not one_each or starts[0] != 0 or min(starts.min(), sizes.min()) < 0:
        raise outside(index)
    if (np.diff(starts) != sizes).any():
        raise outside(index)
    exactly(data, int(starts[-1]) * width)


CHECKS: dict[str, Callable[[Path, int, Path], None]] = {
    "mmap": check_mmap,
    "lazy": check_lazy,
}


def words_known(path: str, words: int, from_one: bool) -> None:
    """Raise :class:`Damage` where a number in the data is no word of the dictionary.

    ``from_one`` says that the older format, and that alone, counts words from 1.
    """
    index = Path(path + ".idx")
    impl, begin = kind(index)
    code, *_ = fields(index, begin, "<B" if impl == "mmap" else "<Q")
    first = int(from_one and impl == "lazy")
    with Path(path + ".bin").open("rb") as data:
        while len(numbers := np.fromfile(data, integers(index, code), BLOCK)):
            least, most = int(numbers.min()) - first, int(numbers.max()) - first
            worst = least if least < 0 else most
            if not 0 <= worst < words:
                raise Damage(f"it has the number {worst} and the dictionary {words} words")
