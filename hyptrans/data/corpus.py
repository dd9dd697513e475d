r"""Lines of parallel text: kept aligned, made safe for every later reader, filtered by length.

Only ``\n`` ends a line. All else that some program takes for the end of a line (a lone carriage
return, U+2028, NEL, vertical tab ...) becomes a space here, so that no later tool can shift a side.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file

Pairs = Iterator[tuple[str, str]]

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


def scrubbed(line: str, *, raw_text: bool) -> str:
    """Replace the characters that would break lines or tokens.

    With ``raw_text``, every Unicode space also becomes a plain one, because no tokenizer does this
    later and fairseq splits at all of them, so a subword could not contain one.
    """
    return (_RAW if raw_text else _ALWAYS).sub(_replacement, line)


def _replacement(match: re.Match[str]) -> str:
    if match.group() in _CONTROLS:
        return ""
    return "_" if match.group() == _META_SPACE else " "


@dataclass(frozen=True)
class CleanRule:
    """Bounds on the tokens of a pair's sides and on their ratio, as in Moses' clean-corpus.

    Attributes:
        maximum: most tokens of a side; a pair with an empty side is always dropped.
        ratio: largest ratio of the longer side to the shorter; 0 switches this check off.
    """

    maximum: int = 250
    ratio: float = 0.0

    def keep(self, pairs: Iterable[tuple[str, str]], dropped: Counter[str]) -> Pairs:
        """Yield the pairs that pass, and count the others by their first reason in ``dropped``."""
        for source, target in pairs:
            fewer, more = sorted((len(source.split()), len(target.split())))
            if not fewer:
                dropped["empty side"] += 1
            elif more > self.maximum:
                dropped[f"longer than {self.maximum}"] += 1
            elif self.ratio and more > self.ratio * fewer:
                dropped[f"ratio above {self.ratio:g}"] += 1
            else:
                yield source, target


def read_pairs(source: Iterable[str], target: Iterable[str], *names: object) -> Pairs:
    """Yield the pairs of two sides' lines.

    Raises:
        UserError: one side ends before the other; the message says where, and calls them ``names``.
    """
    for number, (one, other) in enumerate(zip_longest(source, target)):
        if one is None or other is None:
            shorter, longer = names if one is None else reversed(names)
            raise UserError(
                f"the sides differ in length: {shorter} ends after line {number}, and "
                f"{longer} continues"
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
