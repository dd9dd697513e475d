"""Sentences of one language as tokens of a model, and checks of callers' arguments."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import SupportsIndex

from hyptrans.inference.dictionary import Dictionary
from hyptrans.support.errors import UserError
from hyptrans.support.flags import MOST

Texts = str | Iterable[str]
"""A sentence, or several."""


class Language:
    """A model's source or target language; turns texts into rows of tokens.

    Args:
        side: ``source`` or ``target``, for error messages.
        words: its dictionary.
        cut: function that splits a text into subwords.
        longest: most tokens that the model takes, the end of the sentence included.
    """

    def __init__(
        self, side: str, words: Dictionary, cut: Callable[[str], list[str]], longest: int
    ) -> None:
        self.side, self.words, self.longest = side, words, longest
        self._cut = cut

    def rows(self, texts: Texts) -> list[list[int]]:
        """Return each text's tokens with the end of sentence; none for an empty text.

        Raises:
            TypeError: something is not text.
            UserError: a text has more tokens than the model takes, or half of a character.
        """
        return [row for row, _ in self.cut_all(texts)]

    def cut_all(self, texts: Texts) -> list[tuple[list[int], tuple[str, ...]]]:
        """Return the rows of :meth:`rows`, each with the subwords of its text."""
        if isinstance(texts, bytes) or not isinstance(texts, Iterable):
            raise TypeError(f"text or a list of sentences is needed, got {type(texts).__name__}")
        made = []
        for number, text in enumerate([texts] if isinstance(texts, str) else texts):
            subwords = self._subwords_of(number, text)
            row = [*map(self.words.index, subwords), self.words.eos()] if subwords else []
            if len(row) > self.longest:
                raise UserError(
                    f"{self.side} sentence {number} has {len(row):,} tokens, the model takes "
                    f"{self.longest:,}: split it or leave it out"
                )
            made.append((row, subwords))
        return made

    def too_long(self, texts: Sequence[str]) -> dict[int, int]:
        """Return the sentences that are too long for the model: index -> number of tokens."""
        sizes = [len(self._cut(text)) + 1 for text in texts]
        return {i: size for i, size in enumerate(sizes) if size > self.longest}

    def subwords(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """Return the dictionary's symbols for tokens."""
        return tuple(self.words[token] for token in tokens)

    def _subwords_of(self, number: int, text: str) -> tuple[str, ...]:
        if not isinstance(text, str):
            raise TypeError(
                f"{self.side} sentence {number} must be text, got {type(text).__name__}"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"{self.side} sentence {number} has half of a character "
                f"({error.object[error.start]!a}): decode its file as UTF-8"
            ) from error
        return tuple(self._cut(text))


def check_at_least_one(**values: SupportsIndex) -> None:
    """Raise TypeError for a value that is not an integer, UserError below 1 or above ``MOST``."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, SupportsIndex):
            raise TypeError(f"{name} must be a whole number, got {type(value).__name__}")
        if not 1 <= value.__index__() <= MOST:
            bound = "at least 1" if value.__index__() < 1 else f"at most {MOST:,}"
            raise UserError(f"{name} must be {bound}, got {value}")


def check_bounded(least: float, most: float, **values: float) -> None:
    """Raise TypeError for a value that is not a number, UserError for one out of bounds."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number, got {type(value).__name__}")
        if not least <= value <= most:
            raise UserError(f"{name} must be from {least:g} to {most:g}, got {value}")
