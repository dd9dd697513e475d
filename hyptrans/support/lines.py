r"""Lines of text: read strictly, and written whole.

Only ``\n`` ends a line.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import open_maybe_gzip, whole_file

LONGEST_LINE = 4 << 20
"""Bytes of a line: as many as a book has, and no more than a computer can hold many times."""
MOST_TIMES = 100
"""Unpacked against packed bytes: 3 to 6 in corpora, 41 in commands of a small grammar (SCAN)."""
_NO_QUESTION = 8 << 20
"""Unpacked bytes below which any ratio passes."""
_MOST_SHORT = 1 << 19
"""Lines below which they may be as short as they like. A gzip file of more has no more lines than
it has bytes, as a plain one: reading a line takes microseconds, however short it is."""
_BOM = b"\xef\xbb\xbf"


def read_lines(path: Path, *, may_be_empty: bool = False) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file, plain or gzipped, without their end (``\n``, ``\r\n``).

    Args:
        path: the file.
        may_be_empty: a file without a line is no error.

    Raises:
        UserError: missing, empty or damaged file, bytes that are not UTF-8 or a line of more than
            ``LONGEST_LINE`` bytes (says where), or a gzip file that unpacks to suspiciously much.
    """
    number = 0
    with open_maybe_gzip(path) as file:
        packed = path.stat().st_size
        left = most = most_by_ratio(packed)
        lines = most_lines(packed)
        while line := file.readline(LONGEST_LINE + len(b"\r\n") + 1):
            number, left = number + 1, left - len(line)
            if left < 0 or number > lines:
                found = f"{lines:,} lines" if number > lines else f"{most:,} bytes"
                raise UserError(
                    f"{path} is refused: it unpacks to more than {found}, suspiciously many for "
                    "its size; if you trust it, unpack it and name the text"
                )
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            if len(line) > LONGEST_LINE:
                raise UserError(
                    f"{path}, line {number} has more than {LONGEST_LINE:,} bytes, as no sentence "
                    "has; break it into lines"
                )
            yield decode(line.removeprefix(_BOM) if number == 1 else line, path, number)
    if number == 0 and not may_be_empty:
        raise UserError(f"{path} is empty")


def decode(data: bytes, where: object, number: int | None = None) -> str:
    """Decode UTF-8 strictly.

    Args:
        data: the bytes.
        where: the file, or what stands for it, for the message.
        number: that of the line, from 1, unless ``where`` has it.

    Raises:
        UserError: other bytes; says where the first of them is.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # put together here, as it takes longer than to decode a line
        line = "" if number is None else f", line {number}"
        raise UserError(
            f"{where}{line}: byte 0x{data[error.start]:02x} at position {error.start + 1} is not "
            "UTF-8; convert the file to UTF-8"
        ) from error


def write_lines(lines: Iterable[str], path: Path) -> int:
    """Write lines and return how many there were."""
    count = 0
    with whole_file(path) as file:
        for line in lines:
            file.write(line.encode() + b"\n")
            count += 1
    return count


def most_by_ratio(packed: int, times: int = MOST_TIMES) -> int:
    """Return how many bytes may come out of ``packed`` ones, however many these are."""
    return max(_NO_QUESTION, times * packed)


def most_lines(packed: int) -> int:
    """Return how many lines, or parts of lines, may come out of ``packed`` bytes."""
    return max(_MOST_SHORT, packed)
