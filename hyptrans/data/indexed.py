"""Sets of sentences as numbers in two files, in the ``mmap`` format of fairseq 0.12.

``NAME.bin`` holds the numbers of all sentences one after another. ``NAME.idx`` holds, in little
endian: the magic word, a version (8 bytes), the code of the numbers' type (1), the number of
sentences (8), their lengths (4 each) and their offsets in bytes in the other file (8 each).
"""

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = struct.Struct("<9sQBQ")
_VERSION = 1
_CODES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4"}
"""fairseq's codes for integer types."""
_MOST_SHORT = 65500
"""Size of a dictionary from which on fairseq writes four bytes per number."""


def number_type(symbols: int) -> str:
    """Return the type in which fairseq writes the numbers of a dictionary of this size."""
    return "<u2" if symbols < _MOST_SHORT else "<u4"


def write(sentences: Iterable[bytes], dtype: str, prefix: Path) -> int:
    """Write both files of a set and return its number of sentences.

    Each sentence is the bytes of its numbers, whose type is that of :func:`number_type`.
    """
    width = np.dtype(dtype).itemsize
    data, index = files(prefix)
    lengths = []
    with whole_file(data) as file:
        for sentence in sentences:
            file.write(sentence)
            lengths.append(len(sentence) // width)
    code = next(code for code, name in _CODES.items() if name == dtype)
    ends = np.cumsum(np.array([0, *lengths], "<i8")) * width
    with whole_file(index) as file:
        file.write(_HEADER.pack(_MAGIC, _VERSION, code, len(lengths)))
        file.write(np.array(lengths, "<i4").tobytes())
        file.write(ends[:-1].tobytes())
    return len(lengths)


class IndexedSet:
    """A set of sentences on disk, each of which is read only when needed.

    Attributes:
        sizes: length of each sentence, its end included, ``(sentences,)``.

    Args:
        prefix: path of the files without ``.bin`` and ``.idx``.

    Raises:
        UserError: a file is missing, or the files are not such a set.
    """

    def __init__(self, prefix: Path) -> None:
        data, index = files(prefix)
        for path in (index, data):
            if not path.is_file():
                raise UserError(f"{path} is missing: name a folder that hyptrans prepare wrote")
        content = index.read_bytes()
        damaged = f"{index} is damaged, or no index of fairseq's mmap format"
        try:
            magic, version, code, count = _HEADER.unpack_from(content)
            self._dtype = np.dtype(_CODES[code])
            self.sizes: npt.NDArray[np.int32] = np.frombuffer(content, "<i4", count, _HEADER.size)
            places = np.frombuffer(content, "<i8", count, _HEADER.size + self.sizes.nbytes)
        except (struct.error, KeyError, ValueError, OverflowError) as error:
            raise UserError(damaged) from error
        begins = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        whole = np.array_equal(places, begins * self._dtype.itemsize) and (self.sizes >= 0).all()
        if (magic, version) != (_MAGIC, _VERSION) or not whole:
            raise UserError(damaged)
        self._begins = begins
        if data.stat().st_size != int(self.sizes.sum()) * self._dtype.itemsize:
            raise UserError(
                f"{data} does not have the size that {index} states: prepare the data again"
            )
        # an empty file cannot be memory-mapped
        empty = np.empty(0, self._dtype)
        self._numbers = np.memmap(data, self._dtype, "r") if data.stat().st_size else empty

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, i: int) -> npt.NDArray[np.int64]:
        """Return the numbers of a sentence, ``(length,)``."""
        begin = self._begins[i]
        return self._numbers[begin : begin + self.sizes[i]].astype(np.int64)

    def count(self, number: int) -> int:
        """Return how often a number occurs in the set."""
        return int(np.count_nonzero(self._numbers == number))


def files(prefix: Path) -> list[Path]:
    """Return the paths of numbers and index of a set."""
    # with_suffix would replace the language after the last dot
    return [prefix.with_name(f"{prefix.name}.{ending}") for ending in ("bin", "idx")]
