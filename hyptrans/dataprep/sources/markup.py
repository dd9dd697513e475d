"""Parallel files: plain text, and IWSLT's and WMT's with tag lines, as XML and as SGML."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

from hyptrans.dataprep.corpus import zip_sides
from hyptrans.dataprep.plan import PairSource, Tally
from hyptrans.support.errors import UserError
from hyptrans.support.files import short_names
from hyptrans.support.lines import read_lines

# (what it is, text): the first tells where two sides part
Item = tuple[str, str]
_DROPPED_TAGS = ("<url>", "<talkid>", "<keywords>")
_STRIPPED_TAGS = re.compile("</?(?:title|description)>")
# no part of these can match a text in more than one way, or reach over the next tag
_TAG = re.compile(
    r"<doc\b(?P<doc>[^<>]*)>?|(?P<close></seg>)|<seg(?: id=\"?(?P<id>\d+)\"?>)?", re.IGNORECASE
)
_DOCUMENT_ID = re.compile(r"\bdocid=([\"'])(?P<id>.*?)\1", re.IGNORECASE)
_MOST_CHARACTERS = 3_000_000
"""Of a file that is held in memory whole: six times what newstest2014 has with its tags."""


def tagged_lines(path: Path) -> Iterator[Item]:
    """Yield the lines of an IWSLT ``train.tags`` file; those that are no text with an empty one."""
    for line in read_lines(path):
        for tag in _DROPPED_TAGS:
            if tag in line:
                yield tag, ""
                break
        else:
            found = _STRIPPED_TAGS.search(line)
            yield found.group().replace("/", "") if found else "text", _STRIPPED_TAGS.sub("", line)


def _few_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file of which more than a line has to be in memory.

    Raises:
        UserError: all that ``read_lines`` refuses, or more than ``_MOST_CHARACTERS``.
    """
    left = _MOST_CHARACTERS
    for line in read_lines(path):
        left -= len(line) + 1
        if left < 0:
            raise UserError(
                f"{path} is refused: it has more than {_MOST_CHARACTERS:,} characters, and markup "
                "is held in memory; split it into several files"
            )
        yield line


def xml_segments(path: Path) -> Iterator[Item]:
    """Yield the segments of an IWSLT XML file, whose entities become characters.

    Raises:
        UserError: as for SGML.
    """
    return ((place, html.unescape(text)) for place, text in sgml_segments(path))


def sgml_segments(path: Path) -> Iterator[Item]:
    """Yield the segments of a WMT SGML file; entities stay as they are, as in sacreBLEU.

    Raises:
        UserError: a segment is not closed, there is none, or the file is too large to be held in
            memory.
    """
    text = "\n".join(_few_lines(path))
    count, name = 0, "?"
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if tag["close"]:
            if opened:
                count += 1
                segment = text[opened.end() : tag.start()].strip()
                number = opened["id"].lstrip("0") or "0"
                yield f"document {name} segment {number}", segment
            opened = None
        elif opened:
            raise UserError(f"{path}: segment {opened['id']} is not closed")
        elif tag["doc"]:
            found = _DOCUMENT_ID.search(tag["doc"])
            name = found["id"] if found else "?"
        else:
            opened = tag if tag["id"] else None
    if not count or count != len(re.findall("<seg", text, flags=re.IGNORECASE)):
        raise UserError(f"{path} is no markup of IWSLT or WMT: {count} whole segments were found")


READERS: dict[str, Callable[[Path], Iterator[Item]]] = {
    "tags": tagged_lines,
    "xml": xml_segments,
    "sgml": sgml_segments,
    "plain": lambda path: (("text", line) for line in read_lines(path)),
}


_TEXT = itemgetter(1)
_NUMBERED = ("xml", "sgml")
"""Readers that tell which segment of which document a text is."""


def parallel_files(kind: str, pairs: Sequence[tuple[Path, Path]]) -> PairSource:
    """Pairs of lines from one or several pairs of files, read one after the other.

    Lines that hold only tags are left out.

    Args:
        kind: name of their reader, one of ``READERS``.
        pairs: the files, source and target.
    """
    inputs = [path for pair in pairs for path in pair]
    settings = {"kinds": [kind] * len(pairs)}
    return PairSource(str(pairs[0][0]), inputs, settings, partial(_read, kind, pairs))


def _read(kind: str, pairs: Sequence[tuple[Path, Path]], tally: Tally) -> Iterator[tuple[str, str]]:
    names = short_names(str(source) for source, _ in pairs)
    reader = READERS[kind]
    for source, target in pairs:
        sides = _kept(reader(source), tally), _kept(reader(target), Tally())
        try:
            for (place, one), (other, text) in zip_sides(*sides, source, target, _TEXT):
                if kind in _NUMBERED and place != other:
                    raise UserError(
                        f"{source} has {place} where {target} has {other}: each segment needs "
                        "its translation"
                    )
                tally.parts[names[str(source)]] += 1
                yield one, text
        except UserError as error:
            where = _first_difference(reader(source), reader(target))
            if where and "differ in length" in str(error):
                raise UserError(f"{error}; {where}") from error
            raise


def _kept(items: Iterator[Item], tally: Tally) -> Iterator[Item]:
    for kind, text in items:
        if kind in _DROPPED_TAGS:
            tally.left_out[kind] += 1
        else:
            yield kind, text


def _first_difference(source: Iterator[Item], target: Iterator[Item]) -> str:
    # plain zip: the end of the shorter side is no news here
    for number, ((one, _), (other, _)) in enumerate(zip(source, target, strict=False), start=1):
        if one != other:
            return f"the sides part at item {number}, {one} against {other}"
    return ""
