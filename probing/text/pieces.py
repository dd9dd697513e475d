"""Which characters of a sentence each subword stands for, and which subwords make up a word.

A position is a number of characters from the start of the sentence's text.
"""

import html
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from unicodedata import normalize

from probing.text.trees import Sentence

Span = tuple[int, int]
"""From the first character to the one after the last; ``(0, 0)`` where there is none."""

_SPACE, _JOINED = "\u2581", "@@"
"""How sentencepiece writes a space, and how subword-nmt marks a subword that the next one joins."""
# Moses' escapes, and its mark for a hyphen split off inside a word
_ESCAPED = re.compile(r"&(?:amp|lt|gt|quot|apos|#91|#93|#124);|(?<!\S)@-@(?!\S)|\S")
_CHARACTER = re.compile(r"\S")


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


def align(pieces: Sequence[Span], words: Sequence[Span]) -> list[list[int]] | str:
    """For every word the indices of the subwords that have one of its characters.

    A subword over two words belongs to both, one without characters (a lone space mark) to none.

    Returns:
        The indices, at least one per word, or the reason why there are none for some word.
    """
    aligned = [
        [i for i, (first, last) in enumerate(pieces) if max(first, start) < min(last, end)]
        for start, end in words
    ]
    for number, indices in enumerate(aligned, 1):
        if not indices:
            return f"word {number} has no piece: the preparation of the text leaves it out"
    return aligned


def place_pieces(
    text: str, pieces: Sequence[str], kind: str, *, escaped: bool = False
) -> list[Span]:
    """The characters of a text that each of its subwords stands for.

    Text and subwords are compared character by character, without spaces, which tokenizers add and
    remove, and without what preparation changes: case, escapes of Moses, compatible forms of
    Unicode. Where a stretch still differs, unchanged characters around it tell what became what;
    one that also changed its length comes as a whole from the whole.

    Args:
        text: the sentence.
        pieces: its subwords in order.
        kind: of subwords, ``sentencepiece``, ``subword-nmt`` or ``none``.
        escaped: the preparation escapes characters as Moses does.
    """
    before = [(key, place) for place, one in enumerate(text) for key in _keys(one)]
    joined, owners = _joined(pieces, kind)
    after: list[tuple[str, set[int]]] = []
    for unit in (_ESCAPED if escaped else _CHARACTER).finditer(joined):
        shown = unit.group()
        if escaped:
            shown = "-" if shown == "@-@" else html.unescape(shown)
        own = {owner for owner in owners[unit.start() : unit.end()] if owner >= 0}
        after += [(key, own) for key in _keys(shown)]
    found: list[list[int]] = [[] for _ in pieces]
    sources = _sources([key for key, _ in before], [key for key, _ in after])
    for (_, own), (first, last) in zip(after, sources, strict=True):
        for piece in own:
            found[piece] += [place for _, place in before[first:last]]
    return [(min(places), max(places) + 1) if places else (0, 0) for places in found]


def _keys(text: str) -> str:
    """What is compared of a character, or of an escape: one letter or more."""
    return "".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())


def _joined(pieces: Sequence[str], kind: str) -> tuple[str, list[int]]:
    """The text that subwords spell, and the subword of each of its characters, -1 of a space."""
    joined, owners = "", list[int]()
    for number, piece in enumerate(pieces):
        if kind == "sentencepiece":
            piece, gap = piece.replace(_SPACE, " "), ""
        else:
            gap = "" if piece.endswith(_JOINED) and kind == "subword-nmt" else " "
            piece = piece.removesuffix(_JOINED) if not gap else piece
        joined += piece + gap
        owners += [-1 if one == " " else number for one in piece] + [-1] * len(gap)
    return joined, owners


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
