"""How deep the nouns of WordNet lie below its root, out of its own files.

The files are ``index.noun`` and ``data.noun`` in the format that ``wndb(5WN)`` describes, as
Debian's package ``wordnet-base`` installs them.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines

INDEX, DATA = "index.noun", "data.noun"
ROOT = "entity"
_ABOVE = ("@", "@i")
"""Pointers from a noun to its hypernym, and from an instance, as a town, to what it is one of."""
_LICENSE = "  "
"""What the lines of the license begin with."""

Parsed = TypeVar("Parsed")


class _Synset(NamedTuple):
    place: str
    words: list[str]
    above: list[str]


def noun_depths(folder: Path) -> dict[str, int]:
    """The depth of every noun's first sense: edges on the shortest path from it to ``entity``.

    A noun is spelled as its first sense spells it (``dog``, ``Paris``). Left out are
    nouns whose senses nobody has counted in a text: their order means nothing.

    Raises:
        UserError: a file is missing, or is not of this format; says which line.
    """
    for file in (folder / INDEX, folder / DATA):
        if not file.is_file():
            raise UserError(
                f"{file} does not exist: name the folder of WordNet's files with --wordnet (Debian "
                "has them in the package wordnet-base)"
            )
    first = dict(found for found in _rows(folder / INDEX, _sense) if found)
    synsets = {found.place: found for found in _rows(folder / DATA, _synset)}
    if ROOT not in first:
        raise UserError(f"{folder / INDEX} has no noun {ROOT!r}, the root of WordNet")
    if first[ROOT] not in synsets:
        raise UserError(
            f"{folder / DATA} has no synset {first[ROOT]}, which {INDEX} gives for {ROOT!r}: take "
            "both files of one release"
        )
    depths = _below(first[ROOT], synsets)
    found: dict[str, int] = {}
    for noun, place in first.items():
        if place in depths:
            spelled = (word for word in synsets[place].words if word.lower() == noun)
            found |= dict.fromkeys(spelled, depths[place])
    return found


def _below(root: str, synsets: dict[str, _Synset]) -> dict[str, int]:
    """The depths of all synsets below one, level by level."""
    under: dict[str, list[str]] = {}
    for synset in synsets.values():
        for place in synset.above:
            under.setdefault(place, []).append(synset.place)
    depths, level = dict[str, int](), [root]
    for depth in count():
        depths |= dict.fromkeys(level, depth)
        below = dict.fromkeys(one for place in level for one in under.get(place, []))
        level = [place for place in below if place not in depths]
        if not level:
            break
    return depths


def _rows(path: Path, parse: Callable[[list[str]], Parsed]) -> Iterator[Parsed]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.startswith(_LICENSE):
            try:
                yield parse(line.partition(" | ")[0].split())
            except (ValueError, IndexError) as error:
                raise UserError(
                    f"{path}, line {number}: no line of WordNet's database, as wndb(5WN) has it"
                ) from error


def _sense(fields: list[str]) -> tuple[str, str] | None:
    """``lemma n synset_cnt p_cnt [symbol…] sense_cnt tagsense_cnt offset…``: lemma and offset."""
    pointers = int(fields[3])
    counted, place = int(fields[5 + pointers]), fields[6 + pointers]
    return (fields[0], place) if counted or fields[0] == ROOT else None


def _synset(fields: list[str]) -> _Synset:
    """``offset lex_filenum n w_cnt [word lex_id…] p_cnt [symbol offset pos source/target…]``."""
    # the number of words is hexadecimal, that of pointers is not
    words = int(fields[3], 16)
    after = 4 + 2 * words
    pointers = int(fields[after])
    rest = fields[after + 1 : after + 1 + 4 * pointers]
    if len(rest) < 4 * pointers:
        raise ValueError("too few pointers")
    above = [place for kind, place in zip(rest[::4], rest[1::4], strict=True) if kind in _ABOVE]
    return _Synset(fields[0], fields[4:after:2], above)
