"""Splits a file of sentence pairs so that no source sentence is in two sets.

Made for the Tatoeba pairs that manythings.org hands out (``deu.txt``: English, tab, German, and in
newer files a tab and the authors), where one English sentence has many translations.
"""

import io
import random
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from hyptrans.dataprep.sources.archive import most_bytes
from hyptrans.support.errors import UserError
from hyptrans.support.lines import decode, read_lines, write_lines

SETS = ("train", "valid", "test")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Of the others, zipfile unpacks any size at once."""
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    EOFError,
    # a place before the beginning
    OSError,
    # encrypted, or of a version that zipfile does not know
    RuntimeError,
    # a name that is no text
    ValueError,
)
"""What zipfile raises for what it cannot read."""


def read_table(path: Path, member: str = "deu.txt") -> Iterator[tuple[str, str]]:
    """Yield the first two columns of a table, plain or inside a zip archive.

    Raises:
        UserError: the archive is damaged, encrypted, lacks ``member`` or packs it in a way that
            is not read, or a line has no two columns.
    """
    if not path.is_file():
        raise UserError(f"{path} is not a file")
    if not zipfile.is_zipfile(path):
        yield from _rows(path.read_bytes(), path.name)
        return
    yield from _rows(_member(path, member), f"{path.name}, {member}")


def _member(path: Path, member: str) -> bytes:
    # read into memory: nothing is unpacked, whatever the members are called
    try:
        with zipfile.ZipFile(path) as archive:
            found = archive.getinfo(member)
            if found.compress_type not in _METHODS:
                raise UserError(
                    f"{path} is refused: its {member} is packed by method {found.compress_type}, "
                    "not deflated; unpack it and name the text"
                )
            # either size may be a lie: the file has no more, and no more is unpacked
            packed = min(found.compress_size, path.stat().st_size)
            if found.file_size > most_bytes(packed):
                raise UserError(
                    f"{path} is refused: its {member} is suspiciously large unpacked; if you trust "
                    "it, unpack it and name the text"
                )
            with archive.open(found) as opened:
                return opened.read(found.file_size)
    except _UNREADABLE as error:
        raise UserError(
            f"{path} is damaged or locked, or has no {member} ({error}); unpack it and name the "
            "text"
        ) from error


def _rows(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    if not content:
        raise UserError(f"{name} is empty")
    for number, line in enumerate(io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")), start=1):
        columns = decode(line.rstrip(b"\r\n"), name, number).split("\t")
        if len(columns) < 2:
            raise UserError(f"{name}, line {number} has no tab between two sentences")
        yield columns[0], columns[1]


def split(
    rows: Iterator[tuple[str, str]], *, held_out: int, seed: int
) -> tuple[dict[str, list[tuple[str, str]]], int]:
    """Deal the pairs out by distinct source sentence.

    The sentences are shuffled; ``held_out`` of them go to the test set, as many to the validation
    set. There, the first translation is kept, as a sentence counts once in a score.

    Args:
        rows: source and target sentences.
        held_out: number of sentences of each small set, at least 1.
        seed: of the shuffle.

    Returns:
        The pairs of each set, and how many further translations were left out.

    Raises:
        UserError: there are too few distinct sentences.
    """
    translations: dict[str, list[str]] = {}
    for source, target in rows:
        translations.setdefault(source, []).append(target)
    if len(translations) <= 2 * held_out:
        raise UserError(
            f"{len(translations)} distinct source sentences are too few for two sets of {held_out}"
        )
    order = list(translations)
    random.Random(seed).shuffle(order)
    parts = {
        "test": order[:held_out],
        "valid": order[held_out : 2 * held_out],
        "train": order[2 * held_out :],
    }
    sets: dict[str, list[tuple[str, str]]] = {}
    left_out = 0
    for name in SETS:
        several = name == "train"
        sets[name] = []
        for source in parts[name]:
            targets = translations[source] if several else translations[source][:1]
            left_out += len(translations[source]) - len(targets)
            sets[name] += [(source, target) for target in targets]
    return sets, left_out


def write(sets: dict[str, list[tuple[str, str]]], folder: Path) -> None:
    """Write ``train.en``, ``train.de`` and so on, which may be there already.

    Raises:
        UserError: the folder has another split, of which a test set may be in use.
    """
    files = {
        folder / f"{name}.{lang}": [pair[side] for pair in pairs]
        for name, pairs in sets.items()
        for side, lang in enumerate(("en", "de"))
    }
    for path, lines in files.items():
        if path.exists() and list(read_lines(path, may_be_empty=True)) != lines:
            raise UserError(
                f"{path} is of another table of pairs: choose another --out, or move {folder} away"
            )
    for path, lines in files.items():
        write_lines(lines, path)
