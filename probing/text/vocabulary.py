"""Measure how many tokens of trees a text, such as an encoder's training text, lacks."""

import re
from collections.abc import Iterable, Sequence

from probing.text.trees import Sentence

_PART = re.compile(r"\w+")


def parts_of(text: str) -> list[str]:
    """Return the text's stretches of letters and digits, lower-cased: *Don't* has two."""
    return _PART.findall(text.lower())


def vocabulary(lines: Iterable[str]) -> set[str]:
    """Return all distinct parts of a text."""
    return {part for line in lines for part in parts_of(line)}


def unseen_share(sentences: Sequence[Sentence], known: set[str]) -> float:
    """Return the share of tokens with at least one part that ``known`` lacks.

    Counts only tokens with a letter or digit, in their written form, ignoring case.
    """
    tokens = [parts_of(token.form) for sentence in sentences for token in sentence.tokens]
    counted = [parts for parts in tokens if parts]
    unseen = sum(any(part not in known for part in parts) for parts in counted)
    return unseen / len(counted) if counted else float("nan")
