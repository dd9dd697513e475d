"""Find the characters that each subword of a sentence stands for and the subwords of each word.

Positions count characters from the start of the sentence's text.
"""

import html
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from unicodedata import normalize

from probing.text.trees import Sentence

Span = tuple[int, int]
"""First character and the one after the last; ``(0, 0)`` for a subword without characters."""

_SPACE, _JOINED = "\u2581", "@@"
"""Sentencepiece's space, and subword-nmt's mark of a subword that continues in the next one."""
# Moses' escapes, and its mark for a hyphen split off inside a word
_ESCAPED = re.compile(r"&(?:amp|lt|gt|quot|apos|#91|#93|#124);|(?<!\S)@-@(?!\S)|\S")
_CHARACTER = re.compile(r"\S")


def surface(sentence: Sentence) -> tuple[str, list[Span]]:
    """Return the text that a sentence's tokens spell, and the span of each of its words.

    If the words of a multiword token spell it when joined (do + n't), each has its own characters;
    otherwise (du = de + le) each has all characters of the token.
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
    """Return for every word the indices of the subwords that share a character with it.

    A subword that spans two words belongs to both; one without characters (a lone space mark)
    belongs to none.

    Returns:
        At least one index per word, or a message that names the first word without a subword.
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
    """Return the span of text that each subword stands for.

    Compares text and subwords character by character, ignoring spaces, which tokenizers add and
    remove, and what preparation changes: case, Moses escapes and Unicode compatibility forms.
    Stretches that still differ are matched by the unchanged characters around them. If such a
    stretch also changed its length, all of its characters map to the whole original stretch.

    Args:
        text: the sentence.
        pieces: its subwords in order.
        kind: kind of subwords, ``sentencepiece``, ``subword-nmt`` or ``none``.
        escaped: whether the preparation escapes characters as Moses does.
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
    """Normalize a character or an unescaped unit for comparison; may return several letters."""
    return "".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())


def _joined(pieces: Sequence[str], kind: str) -> tuple[str, list[int]]:
    """Return the text that subwords spell and each character's subword index, -1 for a space."""
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
    """Return for each element of ``after`` the stretch of ``before`` that it came from."""
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
