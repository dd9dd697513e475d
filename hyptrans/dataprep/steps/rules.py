"""A sentencepiece model, looked at before the library is given it.

A rule of some bytes may stand for a text of megabytes, once for each character of a sentence.
"""

import itertools
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import sentencepiece

from hyptrans.support.files import read_bytes

MOST_BYTES = 1_000
"""That one rule may write; those of Unicode's NFKC write up to 33."""

_MOST_OF_A_FILE = 64 << 20
"""Bytes; 256,000 pieces of 10 characters take 5 million."""
_MOST_FIELDS = 1_000_000
"""One for each piece, and a few."""
_MOST_OF_A_SPEC = 100
"""Of the fields of a field that holds rules; the library has six."""
_PIECES, _TRAINER, _NORMALIZER, _SPECS = 1, 2, 3, (3, 5)
"""Numbers of the fields of a model: its pieces, how it was learned, and what holds rules: to
normalize, and to take that back. Others are left out: field 4 has sentences that older releases of
the library try as they read the model."""
_RULES = 2
"""Number of the field of those that holds the compiled rules."""
_COUNT = 4
"""Number of the field of how it was learned that says how many pieces it has."""
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
"""Kinds of fields of a protocol buffer."""
_LONGEST_TAG = 32
"""Bits: a reader of protocol buffers drops what is above, and so reads another number."""
_TOO_LONG = re.compile(rb"(?<![^\0])[^\0]{%d}" % (MOST_BYTES + 1))
"""Begun at no byte but the first of a text, or a file of long ones would take long."""


def load(model: Path) -> sentencepiece.SentencePieceProcessor:
    """The model of a file.

    Raises:
        ValueError: a rule writes more than ``MOST_BYTES``, or the file is no protocol buffer.
        RuntimeError: the library cannot use it.
    """
    found = checked(read_bytes(model, _MOST_OF_A_FILE))
    return sentencepiece.SentencePieceProcessor(model_proto=found)


def checked(model: bytes) -> bytes:
    """The same model, of nothing but what was looked at.

    Raises:
        ValueError: a rule writes more than ``MOST_BYTES``, or it is no protocol buffer, or one
            that ends between two of its fields.
    """
    kept, pieces, said, seen = [], 0, 0, set[int]()
    for number, kind, value, field in _fields(model, _MOST_FIELDS):
        if kind != _LENGTH or number not in (_PIECES, _TRAINER, *_SPECS):
            continue
        if number in _SPECS:
            for inner, kind, rules, _ in _fields(value, _MOST_OF_A_SPEC):
                if inner == _RULES and kind == _LENGTH:
                    check(rules)
        if number == _TRAINER:
            inside = _fields(value, _MOST_FIELDS)
            counts = [_varint(found, 0)[0] for inner, _, found, _ in inside if inner == _COUNT]
            said = max([said, *counts])
        pieces += number == _PIECES
        seen.add(number)
        kept.append(field)
    # the library takes it, and translates in other pieces, or fails at the first sentence
    if not seen >= {_PIECES, _TRAINER, _NORMALIZER}:
        raise ValueError("it is cut short" if seen else "it is empty")
    if pieces < said:
        raise ValueError(f"it is cut short: it has {pieces:,} pieces of {said:,}")
    return b"".join(kept)


def check(rules: bytes) -> None:
    """Compiled rules: the size of a trie, the trie, and what it points to, each ended by a zero."""
    (size,) = struct.unpack("<I", rules[:4].ljust(4, b"\0"))
    written = rules[4 + size :]
    if written and not written.endswith(b"\0"):
        raise ValueError("its rules are cut short")
    if _TOO_LONG.search(written):
        raise ValueError(f"a rule writes more than {MOST_BYTES:,} bytes in place of a character")


def _fields(data: bytes, most: int) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Numbers and kinds of fields, what is in them, and all of their bytes."""
    place = 0
    for count in itertools.count():
        if place == len(data):
            return
        if count == most:
            raise ValueError(f"it has more than {most:,} fields in one place")
        begin = place
        key, place = _varint(data, place)
        if key >> _LONGEST_TAG:
            raise ValueError("a field has no number")
        kind, start = key & 7, place
        if kind == _VARINT:
            _, place = _varint(data, place)
        elif kind == _LENGTH:
            length, start = _varint(data, place)
            place = start + length
        elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
            place += 4 if kind == _FOUR_BYTES else 8
        else:
            raise ValueError(f"a field of kind {kind}")
        if place > len(data):
            raise ValueError("it is cut short")
        yield key >> 3, kind, data[start:place], data[begin:place]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends.

    Raises:
        ValueError: it has no end, or is written longer than it is, which some readers refuse.
    """
    number = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if shift and not byte:
                raise ValueError("a number is written longer than it is")
            return number, place
        shift += 7
    raise ValueError("it is cut short")
