"""How a sentencepiece model rewrites characters, looked at before the library is given the file.

A rule of some bytes may stand for a text of megabytes, once for each character of a sentence.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 1_000
"""That one rule may write; those of Unicode's NFKC write up to 33."""

_SPECS = (3, 5)
"""Numbers of the fields of a model that hold rules: to normalize, and to take that back."""
_RULES = 2
"""Number of the field of those that holds the compiled rules."""
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
"""Kinds of fields of a protocol buffer."""


def check_rules(model: Path) -> None:
    """Refuse a model in which a rule writes more than ``MOST_BYTES``.

    Raises:
        ValueError: it does, or the file is no protocol buffer.
    """
    for number, spec in _fields(model.read_bytes()):
        if number not in _SPECS:
            continue
        for part, rules in _fields(spec):
            if part == _RULES and rules:
                _check(rules)


def _check(rules: bytes) -> None:
    """Compiled rules: the size of a trie, the trie, and what it points to, each ended by a zero."""
    (size,) = struct.unpack("<I", rules[:4].ljust(4, b"\0"))
    *written, rest = rules[4 + size :].split(b"\0")
    longest = max(map(len, [*written, rest]))
    if rest or longest > MOST_BYTES:
        raise ValueError(f"a rule writes {longest:,} bytes in place of a character")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers of fields, and what is in them, empty where it is a number."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind, start = key & 7, place
        if kind == _VARINT:
            _, place = _varint(data, place)
            start = place
        elif kind == _LENGTH:
            length, start = _varint(data, place)
            place = start + length
        elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
            place = start = place + (4 if kind == _FOUR_BYTES else 8)
        else:
            raise ValueError(f"a field of kind {kind}")
        if place > len(data):
            raise ValueError("it is cut short")
        yield key >> 3, data[start:place]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    number = shift = 0
    while place < len(data) and shift < 64:
        byte, place = data[place], place + 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
        shift += 7
    raise ValueError("it is cut short")
