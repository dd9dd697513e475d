r"""Read lines of text strictly, and write them whole.

Only ``\n`` ends a line.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from hyptrans.support.errors import UserError
from hyptrans.support.files import open_maybe_gzip, whole_file

LONGEST_LINE = 4 << 20
"""Most bytes of a line: as many as in a book, yet few enough to hold many times in memory."""
_MOST_TIMES = 100
"""Largest ratio of unpacked to packed bytes; corpora have 3 to 6, small-grammar SCAN has 41."""
_NO_QUESTION = 8 << 20
"""Unpacked bytes below which any ratio passes."""
_MOST_SHORT = 1 << 19
"""Number of lines up to which they may have any length. A larger gzip file may have at most three
lines per four packed bytes: reading even the shortest line takes microseconds, and the densest
known text, small-grammar SCAN, has two lines in three bytes."""
_BOM = b"\xef\xbb\xbf"


def read_lines(path: Path, *, may_be_empty: bool = False) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file, plain or gzipped, without line ends (``\n``, ``\r\n``).

    Raises:
        UserError: the file is missing or damaged, has no lines unless it ``may_be_empty``, unpacks
            to suspiciously much, or has bytes that are not UTF-8 or a line of more than
            ``LONGEST_LINE`` bytes (it says where).
    """
    empty = True
    with open_maybe_gzip(path) as file:
        packed = path.stat().st_size
        found = decoded(file, path, most=most_by_ratio(packed), lines=most_lines(packed))
        for line in found:
            empty = False
            yield line
    if empty and not may_be_empty:
        raise UserError(f"{path} is empty")


def decoded(
    file: IO[bytes], where: object, *, most: float = math.inf, lines: float = math.inf
) -> Iterator[str]:
    """Yield the lines of a stream of UTF-8, as :func:`read_lines`.

    Raises:
        UserError: a line has other bytes, or is too long, or there are more than ``most`` bytes or
            ``lines`` lines; the message names ``where``.
    """
    number, left = 0, most
    while line := file.readline(LONGEST_LINE + len(b"\r\n") + 1):
        number, left = number + 1, left - len(line)
        if left < 0 or number > lines:
            found = f"{lines:,} lines" if number > lines else f"{most:,} bytes"
            raise UserError(
                f"{where} is refused: it unpacks to more than {found}, suspiciously many for its "
                "size; if you trust it, unpack it and name the text"
            )
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > LONGEST_LINE:
            raise UserError(
                f"{where}, line {number} has more than {LONGEST_LINE:,} bytes, as no sentence "
                "has; break it into lines"
            )
        line = line.removeprefix(_BOM) if number == 1 else line
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise UserError(
                f"{where}, line {number}: byte 0x{line[error.start]:02x} at position "
                f"{error.start + 1} is not UTF-8; convert the file to UTF-8"
            ) from error


def write_lines(lines: Iterable[str], path: Path) -> int:
    """Write lines and return how many there were."""
    count = 0
    with whole_file(path) as file:
        for line in lines:
            file.write(line.encode() + b"\n")
            count += 1
    return count


def most_by_ratio(packed: int) -> int:
    """Return how many bytes ``packed`` bytes may unpack to."""
    return max(_NO_QUESTION, _MOST_TIMES * packed)


def most_lines(packed: int) -> int:
    """Return how many lines, or parts of lines, ``packed`` bytes may unpack to."""
    return max(_MOST_SHORT, packed * 3 // 4)
