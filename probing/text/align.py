"""Which subwords make up a word: characters followed through every step from text to pieces.

A position is a number of characters from the start of the sentence's text. Nothing is searched for:
every piece knows which characters of that text it came from, every word which it consists of.
"""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from probing.text.trees import Sentence

Span = tuple[int, int]
"""From the first character to the one after the last."""

_CHARACTER = re.compile(r"\S")
# Moses' escapes, and its mark for a hyphen split off inside a word
_ESCAPED = re.compile(r"&(?:amp|lt|gt|quot|apos|#91|#93|#124);|(?<!\S)@-@(?!\S)|\S")


@dataclass(frozen=True)
class Piece:
    """A subword as the dictionary has it, and the characters of the sentence it came from."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Traced:
    """A text and, for each of its characters, the characters of the original it came from."""

    text: str
    spans: list[Span]

    @classmethod
    def of(cls, text: str) -> "Traced":
        """The original itself."""
        return cls(text, [(i, i + 1) for i in range(len(text))])

    def hull(self, start: int, end: int) -> Span:
        """The characters of the original that a stretch of this text came from."""
        spans = [span for span in self.spans[start:end] if span[0] < span[1]]
        if not spans:
            return (0, 0)
        return min(first for first, _ in spans), max(last for _, last in spans)


def surface(sentence: Sentence) -> tuple[str, list[Span]]:
    """The text that a sentence's tokens spell, and the characters of each of its words.

    Words of a multiword token that spell it one after the other (do + n't) have their own
    characters; where they do not (du = de + le), each of them has all characters of the token.
    """
    text = ""
    spans: list[Span] = []
    for token in sentence.tokens:
        start, words = len(text), sentence.words[token.first : token.last + 1]
        text += token.form
        if "".join(words) == token.form:
            for word in words:
                spans.append((start, start + len(word)))
                start += len(word)
        else:
            spans += [(start, len(text))] * len(words)
        text += " " if token.space_after else ""
    return text.rstrip(" "), spans


def align(pieces: Sequence[Piece], words: Sequence[Span]) -> list[list[int]] | str:
    """For every word the indices of the pieces that have one of its characters.

    A piece over two words belongs to both, one without characters (a lone space mark) to none.

    Args:
        pieces: in the order of the text.
        words: characters of each word; words may share them.

    Returns:
        The indices, at least one per word, or the reason why there are none for some word.
    """
    aligned = [
        [i for i, piece in enumerate(pieces) if max(piece.start, start) < min(piece.end, end)]
        for start, end in words
    ]
    for number, indices in enumerate(aligned, 1):
        if not indices:
            return f"word {number} has no piece: the preparation of the text leaves it out"
    return aligned


def map_characters(traced: Traced, step: Callable[[str], str]) -> Traced:
    """Follow a step that changes characters one by one, each into so many whatever is around it.

    Raises:
        ValueError: the step does something else.
    """
    after = step(traced.text)
    alone = {character: step(character) for character in set(traced.text)}
    parts = [alone[character] for character in traced.text]
    # what they become may depend on others, as the lower-case sigma at the end of a word
    if sum(map(len, parts)) != len(after):
        raise ValueError(f"{step} does not go character by character: {traced.text!r}")
    spans = [span for part, span in zip(parts, traced.spans, strict=True) for _ in part]
    return Traced(after, spans)


def compare(
    traced: Traced, after: str, plain: Callable[[str], str], *, escaped: bool = False
) -> Traced:
    """Follow a step of which only input and output are known: same characters in the same order.

    Spaces do not count, as a tokenizer adds and removes them. Where characters were changed on the
    way, unchanged ones around them tell which became which; a stretch of changed ones that also
    changed its length comes as a whole from the whole.

    Args:
        traced: the step's input.
        after: its output.
        plain: what a character that stands alone becomes.
        escaped: the output has the escapes of Moses.
    """
    alone = {character: "".join(plain(character).split()) for character in set(traced.text)}
    origin = [
        (made, span)
        for character, span in zip(traced.text, traced.spans, strict=True)
        for made in alone[character]
    ]
    units = list((_ESCAPED if escaped else _CHARACTER).finditer(after))
    found = [_unescape(unit.group()) if escaped else unit.group() for unit in units]
    spans: list[Span] = [(0, 0)] * len(after)
    sources = _sources([made for made, _ in origin], found)
    for unit, (first, last) in zip(units, sources, strict=True):
        covered = [span for _, span in origin[first:last] if span[0] < span[1]]
        if covered:
            hull = (covered[0][0], covered[-1][1])
            spans[unit.start() : unit.end()] = [hull] * (unit.end() - unit.start())
    return Traced(after, spans)


def _unescape(unit: str) -> str:
    return "-" if unit == "@-@" else html.unescape(unit)


def _sources(before: list[str], after: list[str]) -> list[Span]:
    """For each element of ``after``, the stretch of ``before`` that it came from."""
    if before == after:
        return [(i, i + 1) for i in range(len(after))]
    sources: list[Span] = []
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for _, first, last, start, end in changes:
        if last - first == end - start:
            sources += [(i, i + 1) for i in range(first, last)]
        else:
            sources += [(first, last)] * (end - start)
    return sources
