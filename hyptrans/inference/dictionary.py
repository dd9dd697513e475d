"""Dictionaries, as fairseq writes them: a symbol and its count a line."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.data.dictionary import EOS, SPECIAL, UNK
from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes

_OVERWRITE = "#fairseq:overwrite"
"""At the end of a line whose symbol is there already."""
MOST_SYMBOLS, MOST_BYTES = 1_000_000, 64 << 20
"""Of a dictionary: every line costs some 300 bytes of memory."""


@dataclass(frozen=True)
class Size:
    """As much of a dictionary as a model without text needs.

    Attributes:
        symbols: how many there are.
    """

    symbols: int

    def __len__(self) -> int:
        return self.symbols

    def pad(self) -> int:
        return SPECIAL.index("<pad>")


class Dictionary:
    """Symbols and their numbers.

    Attributes:
        symbols: by number.
        count: how often each stood in the text.
        nspecial: how many there are before those of the text.
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
        """The number of a symbol, or that of the unknown one."""
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
        """Read a file.

        Raises:
            UserError: it is no dictionary.
        """
        made = cls()
        try:
            # the ends of lines that Python knows
            lines = read_bytes(path, MOST_BYTES).decode().replace("\r\n", "\n").replace("\r", "\n")
            if lines.count("\n") > MOST_SYMBOLS:
                raise ValueError(f"it has more than {MOST_SYMBOLS:,} lines")
            for number, line in enumerate(lines.split("\n"), 1):
                if line:
                    made._add(line.rstrip(), number)
        except ValueError as error:
            raise UserError(f"{path} is no dictionary of fairseq ({error})") from error
        if len(made) == made.nspecial:
            raise UserError(f"{path} has no words")
        # its lines are YAML, a word and its number
        if made.symbols[made.nspecial].strip("\"':") in SPECIAL:
            raise UserError(
                f"{path} is a vocabulary of Marian, no dictionary of fairseq: name the data folder "
                "that the model was trained on"
            )
        return made

    def _add(self, line: str, number: int) -> None:
        symbol, _, count = line.rpartition(" ")
        again = count == _OVERWRITE
        if again:
            symbol, _, count = symbol.rpartition(" ")
        if not symbol or not count.lstrip("-").isdecimal():
            raise ValueError(f"line {number} is not a symbol and its count")
        if symbol in self.indices and not again:
            raise ValueError(f"the symbol of line {number} stands there twice")
        self.indices[symbol] = len(self.symbols)
        self.symbols.append(symbol)
        self.count.append(int(count))


def fingerprint(dictionary: Any) -> str:
    """The SHA-256 of a dictionary's symbols in their order, of fairseq's dictionaries too."""
    digest = hashlib.sha256()
    for symbol in dictionary.symbols:
        digest.update(f"{symbol}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()
