"""Dictionaries in fairseq's format: each line has a symbol and its count."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.data.dictionary import EOS, SPECIAL, UNK
from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes

MOST_SYMBOLS, MOST_BYTES = 1_000_000, 64 << 20
"""Limits of a dictionary: every line costs some 300 bytes of memory."""


@dataclass(frozen=True)
class Size:
    """A dictionary's number of symbols, all that a model without text needs."""

    symbols: int

    def __len__(self) -> int:
        return self.symbols

    def pad(self) -> int:
        return SPECIAL.index("<pad>")


class Dictionary:
    """Symbols and their numbers.

    Attributes:
        symbols: the symbols, in the order of their numbers.
        count: how often each symbol occurred in the text.
        nspecial: number of special symbols, which come before those of the text.
    """

    def __init__(self) -> None:
        self.symbols, self.count = list(SPECIAL), [1] * len(SPECIAL)
        self.indices = {symbol: i for i, symbol in enumerate(SPECIAL)}
        self.nspecial = len(SPECIAL)

    def __eq__(self, other: object) -> bool:
        return getattr(other, "indices", None) == self.indices

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, token: int) -> str:
        return self.symbols[token] if token < len(self) else SPECIAL[self.unk()]

    def index(self, symbol: str) -> int:
        """Return a symbol's number, or that of the unknown symbol."""
        return self.indices.get(symbol, self.unk())

    def bos(self) -> int:
        return 0

    def pad(self) -> int:
        return 1

    def eos(self) -> int:
        return EOS

    def unk(self) -> int:
        return UNK

    @classmethod
    def load(cls, path: Path) -> "Dictionary":
        """Read a dictionary from a file.

        Raises:
            UserError: the file is not a dictionary.
        """
        made = cls()
        try:
            # Python's universal newlines
            lines = read_bytes(path, MOST_BYTES).decode().replace("\r\n", "\n").replace("\r", "\n")
            if lines.count("\n") > MOST_SYMBOLS:
                raise ValueError(f"it has more than {MOST_SYMBOLS:,} lines")
            for number, line in enumerate(filter(None, lines.split("\n")), 1):
                symbol, _, count = line.rstrip().rpartition(" ")
                if not symbol or not count.lstrip("-").isdecimal():
                    raise ValueError(f"entry {number} is not a symbol and its count")
                made.add(symbol, int(count))
            if len(made) == made.nspecial:
                raise ValueError("it has no words")
        except ValueError as error:
            raise UserError(f"{path} is not a dictionary of fairseq ({error})") from error
        return made

    def add(self, symbol: str, count: int) -> None:
        """Add a symbol after the others.

        Raises:
            ValueError: the dictionary has it already.
        """
        if symbol in self.indices:
            raise ValueError(f"it has the symbol {symbol[:40]!r} twice")
        self.indices[symbol] = len(self.symbols)
        self.symbols.append(symbol)
        self.count.append(count)


def fingerprint(dictionary: Any) -> str:
    """Return the SHA-256 of a dictionary's symbols in order; fairseq's dictionaries work too."""
    text = "".join(f"{symbol}\n" for symbol in dictionary.symbols)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
