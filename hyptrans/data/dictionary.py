"""Dictionaries in fairseq's format: a symbol and its count per line, the most frequent first.

fairseq puts four symbols of its own before those of a file, and pads its dictionaries with
``madeupword0000`` and so on to a multiple of eight.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import numpy as np

from hyptrans.support.lines import read_lines, write_lines

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""Symbols that begin every dictionary but are in no file."""
UNKNOWN = SPECIAL[3]
EOS, UNK = 2, 3
"""Numbers of the end-of-sentence and the unknown symbol."""
_MULTIPLE = 8


def count_symbols(encoded: Iterable[Path]) -> Counter[str]:
    """Count the space-separated symbols of encoded files."""
    counts: Counter[str] = Counter()
    for path in encoded:
        for line in read_lines(path):
            counts.update(line.split())
    return counts


def write(counts: Counter[str], path: Path, spelling: Collection[str] = ()) -> int:
    """Write a dictionary as ``fairseq-preprocess`` does, and return its number of symbols.

    The symbols of ``spelling`` are appended with a count of 0. If these are all characters of the
    training text, only other characters can become ``<unk>``.
    """
    seen = counts.keys() - set(SPECIAL)
    rows = [(symbol, counts[symbol]) for symbol in sorted(seen, key=lambda s: (-counts[s], s))]
    rows += [(symbol, 0) for symbol in sorted(set(spelling) - seen)]
    known, number = seen | set(spelling), 0
    while (len(rows) + len(SPECIAL)) % _MULTIPLE:
        filler = f"madeupword{number:04d}"
        rows += [(filler, 0)] * (filler not in known)
        number += 1
    write_lines((f"{symbol} {count}" for symbol, count in rows), path)
    return len(rows) + len(SPECIAL)


def symbols(path: Path) -> Iterator[str]:
    """Yield the symbols of a dictionary's file."""
    return (line.rpartition(" ")[0] for line in read_lines(path))


def encoder(dictionary: Path, dtype: str) -> Callable[[str], bytes]:
    """Return the function from a line to the bytes of its symbols' numbers, ``</s>`` at the end."""
    rows = enumerate((*SPECIAL, *symbols(dictionary)))
    indices, kind = {symbol: number for number, symbol in rows}, np.dtype(dtype)

    def encode(line: str) -> bytes:
        numbers = [indices.get(symbol, UNK) for symbol in line.split()]
        return np.array([*numbers, EOS], kind).tobytes()

    return encode
