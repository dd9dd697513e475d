"""Words of trees that a text, such as the one that an encoder was trained on, does not have."""

import re
from collections.abc import Iterable, Sequence

from probing.text.trees import Sentence

_PART = re.compile(r"\w+")


def parts_of(text: str) -> list[str]:
    """Its stretches of letters and digits, lower-cased: *Don't* has two."""
    return _PART.findall(text.lower())


def vocabulary(lines: Iterable[str]) -> set[str]:
    """All parts of a text."""
    return {part for line in lines for part in parts_of(line)}


def unseen_share(sentences: Sequence[Sentence], known: set[str]) -> float:
    """Share of the tokens with a letter or digit that have a part which the text lacks.

    Tokens are taken as they are written, and upper and lower case are one.
    """
    tokens = [parts_of(token.form) for sentence in sentences for token in sentence.tokens]
    counted = [parts for parts in tokens if parts]
    unseen = sum(any(part not in known for part in parts) for parts in counted)
    return unseen / len(counted) if counted else float("nan")
