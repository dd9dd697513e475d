r"""Lines of parallel text: kept aligned, and made safe for every later reader.

Only ``\n`` ends a line. All else that some program takes for the end of a line (a lone carriage
return, U+2028, NEL, vertical tab ...) becomes a space here, so that no later tool can shift a side.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file

Line = TypeVar("Line")

# characters that end a line for str.splitlines, text-mode files or terminals
_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"
# the other control characters (NUL ends a string for C code), and stray byte order marks
_CONTROLS = "".join(
    chr(code)
    for code in (*range(0x20), *range(0x7F, 0xA0), 0xFEFF)
    if chr(code) not in _BREAKS + "\t"
)
# spaces at which fairseq splits tokens; no subword may contain them
_SPACES = "\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
# sentencepiece writes this for a space
_META_SPACE = "\u2581"
_ALWAYS = re.compile(f"[{_BREAKS}{_CONTROLS}]")
_RAW = re.compile(f"[{_BREAKS}{_CONTROLS}{_SPACES}{_META_SPACE}]")


class Scrubber:
    """Replaces the characters that would break lines or tokens, and counts them.

    With ``raw_text``, every Unicode space also becomes a plain one, because no tokenizer does this
    later and fairseq splits at all of them, so a subword could not contain one.
    """

    def __init__(self, *, raw_text: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._pattern = _RAW if raw_text else _ALWAYS

    def __call__(self, line: str) -> str:
        return self._pattern.sub(self._replace, line)

    def _replace(self, match: re.Match[str]) -> str:
        character = match.group()
        self.counts[f"U+{ord(character):04X}"] += 1
        if character in _CONTROLS:
            return ""
        return "_" if character == _META_SPACE else " "


def zip_sides(
    source: Iterable[Line],
    target: Iterable[Line],
    source_name: object,
    target_name: object,
    text_of: Callable[[Line], str] = str,
) -> Iterator[tuple[Line, Line]]:
    """Yield pairs of lines; if one side is longer, the error names its first unpaired line.

    Args:
        source: lines, or items that each hold one.
        target: likewise.
        source_name: their origin, for the message.
        target_name: likewise.
        text_of: returns the text of an item.

    Raises:
        UserError: one side ends before the other.
    """
    pairs = zip_longest(source, target)
    for number, (one, other) in enumerate(pairs, start=1):
        if one is None or other is None:
            total = number + sum(1 for _ in pairs)
            names = (source_name, target_name)
            longer, shorter = names[::-1] if one is None else names
            lonely = other if one is None else one
            text = "" if lonely is None else text_of(lonely)[:60]
            raise UserError(
                f"the sides differ in length: {shorter} has {number - 1} lines and {longer} has "
                f"{total}; the first line without a partner is {longer}, line {number}: {text!r}"
            )
        yield one, other


def write_pairs(pairs: Iterable[tuple[str, str]], source_path: Path, target_path: Path) -> int:
    """Write both sides, one line each, and return the number of pairs."""
    count = 0
    with whole_file(source_path) as source, whole_file(target_path) as target:
        for one, other in pairs:
            source.write(one.encode() + b"\n")
            target.write(other.encode() + b"\n")
            count += 1
    return count
