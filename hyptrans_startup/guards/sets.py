"""The two files of a binarized text: an index of sentences, and their words as numbers.

fairseq believes both, maps them into memory and looks words up by number, without a check.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hyptrans_startup.errors import UserError

AGAIN = "write the data folder again with fairseq-preprocess"
BLOCK = 1 << 20
"""Sentences, or words, that are looked at in one go."""

_OLD_MAGIC = b"TNTIDX\x00\x00"
_OLD_HEAD = struct.Struct("<8sQQQQQ")


class Index(NamedTuple):
    """Where things are in an index: sizes of sentences (int32), then positions in bytes (int64)."""

    path: Path
    begin: int
    sentences: int
    dtype: np.dtype[Any]


@contextmanager
def half_written_data(module: ModuleType) -> Iterator[None]:
    """``mmap``, ``frombuffer`` and ``__del__`` tracebacks for data that was cut short."""
    yield
    stock_make, stock_exists = module.make_dataset, module.dataset_exists

    def check(path: str) -> None:
        reason = damage(path, module)
        if reason is not None:
            raise UserError(f"{path}.* is damaged or half written ({reason}); {AGAIN}")

    def make_dataset(
        path: str, impl: Any, fix_lua_indexing: bool = False, dictionary: Any = None
    ) -> Any:
        check(path)
        if dictionary is not None:
            reason = unknown_words(path, len(dictionary), module)
            if reason is not None:
                raise UserError(f"{path}.* does not go with its dictionary ({reason}); {AGAIN}")
        return stock_make(path, impl, fix_lua_indexing, dictionary)

    def dataset_exists(path: str, *args: Any, **kwargs: Any) -> Any:
        check(path)
        return stock_exists(path, *args, **kwargs)

    vars(module).update(make_dataset=make_dataset, dataset_exists=dataset_exists)


def damage(path: str, indexed_dataset: ModuleType) -> str | None:
    """Return what is wrong with the two files, None where nothing is."""
    index, data = Path(path + ".idx"), Path(path + ".bin")
    if index.exists() != data.exists():
        return f"{(data if index.exists() else index).name} is missing"
    if not index.exists():
        return None
    found = head(index, indexed_dataset)
    if not isinstance(found, Index):
        return found
    if found.sentences == 0:
        return f"{index.name} has no sentences"
    if index.stat().st_size < found.begin + 12 * found.sentences:
        return f"{index.name} is cut short"
    return layout(found, data)


def head(index: Path, indexed_dataset: ModuleType) -> Index | str | None:
    """Return what an index says of itself, or what is wrong with it; None for other formats.

    It begins with a magic number, a version, the code of the type and the number of sentences.
    """
    magic = indexed_dataset.MMapIndexedDataset.Index._HDR_MAGIC
    begin = len(magic) + struct.calcsize("<QBQ")
    with index.open("rb") as file:
        start = file.read(begin)
    if start.startswith(_OLD_MAGIC):
        return old_format(index)
    if start and not start.startswith(magic):
        return None
    if len(start) < begin:
        return f"{index.name} is cut short"
    _, code, count = struct.unpack("<QBQ", start[len(magic) :])
    kind = indexed_dataset._code_to_dtype.get(code)
    if kind is None or np.dtype(kind).kind not in "iu":
        return f"{index.name} has an unknown type of numbers, {code}"
    return Index(index, begin, count, np.dtype(kind))


def old_format(index: Path) -> str | None:
    """Return what is wrong with an index of fairseq's older format, which is read whole."""
    with index.open("rb") as file:
        start = file.read(_OLD_HEAD.size)
    if len(start) < _OLD_HEAD.size:
        return f"{index.name} is cut short"
    *_, width, count, dimensions = _OLD_HEAD.unpack(start)
    if index.stat().st_size < _OLD_HEAD.size + 8 * (2 * (count + 1) + dimensions):
        return f"{index.name} is cut short"
    # where the sizes of a sentence are, where its words are, and the sizes
    numbers = np.fromfile(index, "<i8", 2 * (count + 1) + dimensions, offset=_OLD_HEAD.size)
    places, starts, sizes = np.split(numbers, [count + 1, 2 * (count + 1)])
    one_each = dimensions == count and (places == np.arange(count + 1)).all()
    if not one_each or starts[0] != 0 or (sizes < 0).any() or (np.diff(starts) != sizes).any():
        return f"{index.name} points inside or outside of its sentences"
    if index.with_suffix(".bin").stat().st_size < int(starts[-1]) * width:
        return f"{index.with_suffix('.bin').name} is cut short"
    return None


def layout(index: Index, data: Path) -> str | None:
    """Return what is wrong with sizes and positions: sentences follow each other without gaps."""
    end = 0
    for start in range(0, index.sentences, BLOCK):
        count = min(BLOCK, index.sentences - start)
        sizes = np.fromfile(index.path, "<i4", count, offset=index.begin + 4 * start)
        offset = index.begin + 4 * index.sentences + 8 * start
        positions = np.fromfile(index.path, "<i8", count, offset=offset)
        if (sizes < 0).any():
            return f"{index.path.name} has a sentence of less than no words"
        ends = end + np.cumsum(sizes.astype(np.int64) * index.dtype.itemsize)
        if positions[0] != end or (positions[1:] != ends[:-1]).any():
            return f"{index.path.name} points inside or outside of its sentences"
        end = int(ends[-1])
    if data.stat().st_size < end:
        return f"{data.name} is cut short"
    return None


def unknown_words(path: str, words: int, indexed_dataset: ModuleType) -> str | None:
    """Return which number in the data is no word of the dictionary, None where all are."""
    data = Path(path + ".bin")
    index = head(Path(path + ".idx"), indexed_dataset) if data.exists() else None
    if not isinstance(index, Index):
        return None
    with data.open("rb") as file:
        while len(numbers := np.fromfile(file, index.dtype, BLOCK)):
            worst = numbers.min() if numbers.min() < 0 else numbers.max()
            if not 0 <= worst < words:
                return f"it has the number {worst} and the dictionary {words} words"
    return None
