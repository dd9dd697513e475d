"""Parallel files: plain text, and IWSLT's and WMT's with tag lines, as XML and as SGML."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hyptrans.dataprep.corpus import read_lines, zip_sides
from hyptrans.dataprep.plan import Tally
from hyptrans.support.errors import UserError

# (what it is, text): the first tells where two sides part
Item = tuple[str, str]
_DROPPED_TAGS = ("<url>", "<talkid>", "<keywords>")
_STRIPPED_TAGS = re.compile("</?(?:title|description)>")
_DOCUMENT = re.compile(r"<doc\b[^>]*?docid=\"([^\"]*)\"", re.IGNORECASE)
_SEGMENT = re.compile(r"<seg id=\"?(\d+)\"?>\s*(.*?)\s*</seg>", re.IGNORECASE | re.DOTALL)


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


def xml_segments(path: Path) -> Iterator[Item]:
    """Yield the segments of an IWSLT XML file.

    Raises:
        UserError: the file is not well-formed (says where), or holds no segment.
    """
    try:
        root = ElementTree.fromstring("\n".join(read_lines(path)))
    except ElementTree.ParseError as error:
        raise UserError(f"{path} is not well-formed XML: {error}") from error
    empty = True
    for document in root.iter("doc"):
        for segment in document.iter("seg"):
            empty = False
            place = f"document {document.get('docid')} segment {segment.get('id')}"
            yield place, "".join(segment.itertext()).strip()
    if empty:
        raise UserError(f"{path} holds no segment (<doc> with <seg>)")


def sgml_segments(path: Path) -> Iterator[Item]:
    """Yield the segments of a WMT SGML file; entities stay as they are, as in sacreBLEU.

    Raises:
        UserError: a segment is not closed, or there is none.
    """
    text = "\n".join(read_lines(path))
    count = 0
    for part in re.split(r"(?=<doc\b)", text, flags=re.IGNORECASE):
        name = _DOCUMENT.match(part)
        for segment in _SEGMENT.finditer(part):
            if "<seg" in segment[2]:
                raise UserError(f"{path}: segment {segment[1]} is not closed")
            count += 1
            place = f"document {name[1] if name else '?'} segment {segment[1]}"
            yield place, segment[2]
    if not count or count != len(re.findall("<seg", text, flags=re.IGNORECASE)):
        raise UserError(f"{path} is not SGML as of WMT: {count} whole segments were found")


READERS: dict[str, Callable[[Path], Iterator[Item]]] = {
    "tags": tagged_lines,
    "xml": xml_segments,
    "sgml": sgml_segments,
    "plain": lambda path: (("text", line) for line in read_lines(path)),
}


@dataclass(frozen=True)
class ParallelFiles:
    """Pairs of lines from one or several pairs of files, read one after the other.

    Attributes:
        kinds: name of the reader of each pair of files, one of ``READERS``.
        pairs: the files, source and target.
    """

    kinds: tuple[str, ...]
    pairs: tuple[tuple[Path, Path], ...]

    @property
    def inputs(self) -> list[Path]:
        """The files of both sides."""
        return [path for pair in self.pairs for path in pair]

    @property
    def settings(self) -> dict[str, Any]:
        """How the files are read."""
        return {"kinds": list(self.kinds)}

    def read(self, tally: Tally) -> Iterator[tuple[str, str]]:
        """Yield the pairs of text; lines that hold only tags are left out."""
        for kind, (source, target) in zip(self.kinds, self.pairs, strict=True):
            reader = READERS[kind]
            sides = _text(reader(source), tally), _text(reader(target), Tally())
            try:
                for pair in zip_sides(*sides, source, target):
                    tally.parts[source.name] += 1
                    yield pair
            except UserError as error:
                where = _first_difference(reader(source), reader(target))
                if where and "differ in length" in str(error):
                    raise UserError(f"{error}; {where}") from error
                raise


def _text(items: Iterator[Item], tally: Tally) -> Iterator[str]:
    for kind, text in items:
        if kind in _DROPPED_TAGS:
            tally.left_out[kind] += 1
        else:
            yield text


def _first_difference(source: Iterator[Item], target: Iterator[Item]) -> str:
    # plain zip: the end of the shorter side is no news here
    for number, ((one, _), (other, _)) in enumerate(zip(source, target, strict=False), start=1):
        if one != other:
            return f"the sides part at item {number}, {one} against {other}"
    return ""
