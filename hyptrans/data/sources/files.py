"""Parallel files: plain text, and those of IWSLT and WMT with tag lines, in XML or SGML."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hyptrans.data.corpus import Pairs, read_pairs
from hyptrans.support.errors import UserError
from hyptrans.support.lines import most_lines, read_lines

_DROPPED_TAGS = ("<url>", "<talkid>", "<keywords>")
_STRIPPED_TAGS = re.compile("</?(?:title|description)>")
_SEGMENT = re.compile(r"<seg id=\"?\d{1,9}\"?>(.*?)</seg>", re.IGNORECASE)


def tagged_lines(path: Path) -> Iterator[str]:
    """Yield the lines of text in an IWSLT ``train.tags`` file; titles and descriptions are text."""
    for line in read_lines(path):
        if not any(tag in line for tag in _DROPPED_TAGS):
            yield _STRIPPED_TAGS.sub("", line)


def sgml_segments(path: Path) -> Iterator[str]:
    """Yield the segments of a WMT SGML file; entities stay as they are, as in sacreBLEU.

    Raises:
        UserError: a segment does not end on its line, or there are no segments.
    """
    count, most = 0, most_lines(path.stat().st_size)
    for number, line in enumerate(read_lines(path), 1):
        # a line without markup needs no search
        lower = line.lower() if "<" in line else ""
        begun, ended = lower.count("<seg"), lower.count("</seg>")
        found = _SEGMENT.findall(line) if begun == ended else []
        if len(found) != max(begun, ended):
            raise UserError(f"{path}, line {number}: a segment is not closed, or has no number")
        count += len(found)
        if count > most:
            raise UserError(f"{path} is refused: it has more than {most:,} segments")
        yield from map(str.strip, found)
    if not count:
        raise UserError(f"{path} is not IWSLT or WMT markup: it has no segment")


READERS: dict[str, Callable[[Path], Iterator[str]]] = {
    "tags": tagged_lines,
    # in the XML files of IWSLT, entities stand for characters
    "xml": lambda path: map(html.unescape, sgml_segments(path)),
    "sgml": sgml_segments,
    "plain": read_lines,
}


def parallel_files(kind: str, pairs: Sequence[Sequence[Path]]) -> Pairs:
    """Yield the pairs of lines of pairs of files, source and target, read one after another.

    ``kind`` is the name of their reader in ``READERS``.
    """
    for source, target in pairs:
        yield from read_pairs(READERS[kind](source), READERS[kind](target), source, target)


def locate(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """Return the path of each file, plain or gzipped.

    Raises:
        UserError: some files are missing; the message names all of them.
    """
    found: dict[str, Path] = {}
    for name in names:
        paths = (folder / f"{name}{ending}" for folder in folders for ending in ("", ".gz"))
        if path := next(filter(Path.is_file, paths), None):
            found[name] = path
    if missing := [name for name in names if name not in found]:
        raise UserError(f"not found in {folders[0]}: {', '.join(missing)}")
    return found
