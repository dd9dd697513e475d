"""Parallel files: plain text, and IWSLT's and WMT's with tag lines, as XML and as SGML."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hyptrans.dataprep.corpus import zip_sides
from hyptrans.dataprep.plan import Tally
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
_DEEPEST = 100
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
    """Yield the segments of an IWSLT XML file.

    Raises:
        UserError: the file is not well-formed (says where), too large to be held in memory, holds
            no segment, or documents in documents or segments in segments.
    """
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    document: ElementTree.Element | None = None
    inside: list[str] = []
    empty = True
    try:
        for event, element in _elements(path, parser):
            if event == "start":
                _check_nesting(path, element.tag, inside)
                inside.append(element.tag)
                document = element if element.tag == "doc" else document
                continue
            inside.pop()
            if element.tag == "seg" and document is not None and "doc" in inside:
                empty = False
                place = f"document {document.get('docid')} segment {element.get('id')}"
                yield place, "".join(element.itertext()).strip()
            if "seg" not in inside:
                element.clear()
    except ElementTree.ParseError as error:
        raise UserError(f"{path} is not well-formed XML: {error}") from error
    if empty:
        raise UserError(f"{path} holds no segment (<doc> with <seg>)")


def _elements(path: Path, parser: Any) -> Iterator[tuple[str, Any]]:
    for line in _few_lines(path):
        if "<!ENTITY" in line:
            raise UserError(f"{path} is refused: it defines entities, which can grow without end")
        parser.feed(line + "\n")
        yield from parser.read_events()
    parser.close()
    yield from parser.read_events()


def _check_nesting(path: Path, tag: str, inside: list[str]) -> None:
    if tag in ("doc", "seg") and tag in inside:
        raise UserError(f"{path} is refused: it has a <{tag}> inside a <{tag}>")
    if len(inside) >= _DEEPEST:
        raise UserError(f"{path} is refused: its elements lie in each other without end")


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
        raise UserError(f"{path} is not SGML as of WMT: {count} whole segments were found")


READERS: dict[str, Callable[[Path], Iterator[Item]]] = {
    "tags": tagged_lines,
    "xml": xml_segments,
    "sgml": sgml_segments,
    "plain": lambda path: (("text", line) for line in read_lines(path)),
}


_TEXT = itemgetter(1)
_NUMBERED = ("xml", "sgml")
"""Readers that tell which segment of which document a text is."""


@dataclass(frozen=True)
class ParallelFiles:
    """Pairs of lines from one or several pairs of files, read one after the other.

    Attributes:
        kind: name of their reader, one of ``READERS``.
        pairs: the files, source and target.
    """

    kind: str
    pairs: tuple[tuple[Path, Path], ...]

    @property
    def place(self) -> str:
        """The first file."""
        return str(self.pairs[0][0])

    @property
    def inputs(self) -> list[Path]:
        """The files of both sides."""
        return [path for pair in self.pairs for path in pair]

    @property
    def settings(self) -> dict[str, Any]:
        """How the files are read."""
        return {"kinds": [self.kind] * len(self.pairs)}

    def read(self, tally: Tally) -> Iterator[tuple[str, str]]:
        """Yield the pairs of text; lines that hold only tags are left out."""
        names = short_names(str(source) for source, _ in self.pairs)
        reader = READERS[self.kind]
        for source, target in self.pairs:
            sides = _kept(reader(source), tally), _kept(reader(target), Tally())
            try:
                for (place, one), (other, text) in zip_sides(*sides, source, target, _TEXT):
                    if self.kind in _NUMBERED and place != other:
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
