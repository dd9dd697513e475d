"""Dictionaries, as fairseq writes them: a symbol and its count a line."""

from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans_startup.data.folders import read_dictionary

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""Symbols that every dictionary begins with and no file has."""
_OVERWRITE = "#fairseq:overwrite"
"""At the end of a line whose symbol is there already."""


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
        return 2

    def unk(self) -> int:
        return 3

    @classmethod
    def load(cls, path: Path) -> "Dictionary":
        """Read a file.

        Raises:
            UserError: it is no dictionary.
        """
        made = cls()
        try:
            for number, line in enumerate(read_dictionary(path).split("\n"), 1):
                if line:
                    made._add(line.rstrip(), number)
        except ValueError as error:
            raise UserError(f"{path} is no dictionary of fairseq ({error})") from error
        if len(made) == made.nspecial:
            raise UserError(f"{path} has no words")
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
