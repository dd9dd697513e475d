"""Parallel files: plain text, and those of IWSLT and WMT with tag lines, in XML or SGML."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

from hyptrans.data.corpus import zip_sides
from hyptrans.data.plan import PairSource, Tally
from hyptrans.support.errors import UserError
from hyptrans.support.files import short_names
from hyptrans.support.lines import most_lines, read_lines

# (description, text): the description tells where two sides diverge
Item = tuple[str, str]
_DROPPED_TAGS = ("<url>", "<talkid>", "<keywords>")
_STRIPPED_TAGS = re.compile("</?(?:title|description)>")
_SEGMENT = re.compile(r"<seg id=\"?0*(?P<id>\d{1,9})\"?>(?P<text>.*?)</seg>", re.IGNORECASE)
_DOCUMENT = re.compile(r"<doc\b[^<>]*\bdocid=([\"'])(?P<id>[^<>\"']*)\1", re.IGNORECASE)


def tagged_lines(path: Path) -> Iterator[Item]:
    """Yield the lines of an IWSLT ``train.tags`` file; those that are no text have an empty one."""
    for line in read_lines(path):
        tag = next((tag for tag in _DROPPED_TAGS if tag in line), None)
        if tag:
            yield tag, ""
        else:
            found = _STRIPPED_TAGS.search(line)
            yield found.group().replace("/", "") if found else "text", _STRIPPED_TAGS.sub("", line)


def sgml_segments(path: Path) -> Iterator[Item]:
    """Yield the segments of a WMT SGML file; entities stay as they are, as in sacreBLEU.

    Raises:
        UserError: a segment does not end on its line, or there are no segments.
    """
    name, count, most = "?", 0, None
    for number, line in enumerate(read_lines(path), 1):
        if "<" not in line:
            continue
        lower = line.lower()
        if "<doc" in lower and (document := _DOCUMENT.search(line)):
            name = document["id"]
        begun, ended = lower.count("<seg"), lower.count("</seg>")
        found = list(_SEGMENT.finditer(line)) if begun == ended else []
        if len(found) != max(begun, ended):
            raise UserError(f"{path}, line {number}: a segment is not closed, or has no number")
        for segment in found:
            yield f"document {name} segment {segment['id']}", segment["text"].strip()
        count += len(found)
        most = most_lines(path.stat().st_size) if most is None else most
        if count > most:
            raise UserError(f"{path} is refused: it has more than {most:,} segments")
    if not count:
        raise UserError(f"{path} is no markup of IWSLT or WMT: it has no segment")


def xml_segments(path: Path) -> Iterator[Item]:
    """Yield the segments of an IWSLT XML file, whose entities become characters.

    Raises:
        UserError: as for SGML.
    """
    return ((place, html.unescape(text)) for place, text in sgml_segments(path))


READERS: dict[str, Callable[[Path], Iterator[Item]]] = {
    "tags": tagged_lines,
    "xml": xml_segments,
    "sgml": sgml_segments,
    "plain": lambda path: (("text", line) for line in read_lines(path)),
}
_NUMBERED = ("xml", "sgml")
"""Readers that describe a text by its document and segment."""


def parallel_files(
    kind: str, pairs: Sequence[tuple[Path, Path]], find: Callable[[Path], Path] = Path
) -> PairSource:
    """Return the pairs of lines from one or several pairs of files, read one after another.

    Lines that hold only tags are left out.

    Args:
        kind: name of their reader, one of ``READERS``.
        pairs: the files, source and target.
        find: returns where a file is at the time of reading.
    """
    inputs = [path for pair in pairs for path in pair]
    return PairSource(str(pairs[0][0]), partial(_read, kind, pairs, find), inputs)


def locate(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """Return the path of each file, plain or gzipped.

    Raises:
        UserError: some files are missing; the message names all of them.
    """
    found: dict[str, Path] = {}
    for name in names:
        for folder in folders:
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    found.setdefault(name, path)
    if missing := [name for name in names if name not in found]:
        raise UserError(f"not found in {folders[0]}: {', '.join(missing)}")
    return found


def _read(
    kind: str, pairs: Sequence[tuple[Path, Path]], find: Callable[[Path], Path], tally: Tally
) -> Iterator[tuple[str, str]]:
    found = [(find(source), find(target)) for source, target in pairs]
    names = short_names(str(source) for source, _ in found)
    reader = READERS[kind]
    for source, target in found:
        sides = _kept(reader(source), tally), _kept(reader(target), Tally())
        try:
            for (place, one), (other, text) in zip_sides(*sides, source, target, itemgetter(1)):
                if kind in _NUMBERED and place != other:
                    raise UserError(
                        f"{source} has {place} where {target} has {other}: each segment needs "
                        "its translation"
                    )
                tally.parts[names[str(source)]] += 1
                yield one, text
        except UserError as error:
            both = zip(reader(source), reader(target), strict=False)
            differ = ((n, a, b) for n, ((a, _), (b, _)) in enumerate(both, 1) if a != b)
            where = next(differ, None) if "differ in length" in str(error) else None
            if where is None:
                raise
            number, one, text = where
            part = f"the sides part at item {number}, {one} against {text}"
            raise UserError(f"{error}; {part}") from error


def _kept(items: Iterator[Item], tally: Tally) -> Iterator[Item]:
    for kind, text in items:
        if kind in _DROPPED_TAGS:
            tally.left_out[kind] += 1
        else:
            yield kind, text
