"""Dictionaries that are too long, or have lines other than a word and its count."""

import gzip
import random
from functools import partial
from pathlib import Path

from tests.hostile.running import Hostile, of_each_kind, ordinary


def load(path: Path) -> None:
    """As ``hyptrans`` does."""
    from hyptrans.inference.dictionary import Dictionary

    Dictionary.load(path)


DIGITS = ["\u0661", "\u00b2", "1_0", "--1", "+1", "0x1"]
DICTIONARIES = {
    "lines without end": lambda draw: b"a 1\n" * draw.randint(5_000_000, 6_000_000),
    "empty lines without end": lambda draw: b"\n" * draw.randint(5_000_000, 9_000_000),
    "other lines without end": lambda draw: b"".join(b"%d 1\n" % i for i in range(5_000_000)),
    "a word without end": lambda draw: b"a" * draw.randint(65 << 20, 99 << 20) + b" 1\n",
    "zeros": lambda draw: bytes(draw.randint(65 << 20, 99 << 20)),
    "the same word": lambda draw: b"a 1\n" * 900_000,
    "words that overwrite": lambda draw: b"a 1 #fairseq:overwrite\n" * 900_000,
    "a large count": lambda draw: b"a " + b"9" * draw.choice([99, 4_000, 10**6]) + b"\n",
    "no count": lambda draw: draw.choice(
        [b"a\n", b"a b\n", b" 1\n", b"a 1.5\n", b"a inf\n", b"1\n"]
    ),
    "other digits": lambda draw: f"a {draw.choice(DIGITS)}\n".encode(),
    "another encoding": lambda draw: draw.choice(
        ["a 1\nä 1\n".encode("latin1"), b"a 1\n\xff\xfe 1\n"]
    ),
    "other ends of lines": lambda draw: "a 1\u2028b 1\x85c 1\x1cd 1\r\n".encode(),
    "words for the terminal": lambda draw: b"\x1b[31m\x07 1\n\x1b[31m\x07 1\n",
    "nothing": lambda draw: draw.choice([b"", b"\n", b"\n\n\n", b" \n"]),
    "its own symbols": lambda draw: draw.choice([b"<pad> 1\n", b"<s> 1\n</s> 1\n", b"<unk> 1\n"]),
    "packed": lambda draw: gzip.compress(b"a 1\n" * 9),
}


def dictionaries(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One of each kind after the other."""
    whole = folder / "whole.txt"
    whole.write_text("a 1\nb 2\n")
    return [ordinary(partial(load, whole)), *of_each_kind(DICTIONARIES, load, draw, folder, count)]
