"""Split a file of sentence pairs so that no sentence of either side is in two sets.

Made for the Tatoeba pairs of manythings.org (``deu.txt``: English, tab, German, and in newer files
a tab and the authors), in which sentences of both sides have many translations.
"""

import random
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.lines import decoded, most_by_ratio, most_lines, read_lines, write_lines

SETS = ("train", "valid", "test")
Pair = tuple[str, str]
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""With other methods, zipfile unpacks any size at once."""


def read_table(path: Path, member: str = "deu.txt") -> Iterator[Pair]:
    """Yield the first two columns of a table, plain or inside a zip archive.

    Raises:
        UserError: the archive is damaged, encrypted or too large, lacks ``member`` or compresses it
            by another method, or a line has fewer than two columns.
    """
    zipped = path.is_file() and zipfile.is_zipfile(path)
    lines = lines_in_zip(path, member) if zipped else read_lines(path)
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise UserError(f"{path}, line {number} has no tab between two sentences")
        yield columns[0], columns[1]


def lines_in_zip(path: Path, member: str, password: bytes | None = None) -> Iterator[str]:
    """Yield the lines of an archive's member, which no false size makes large in memory.

    Raises:
        UserError: as for :func:`read_table`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found, packed = archive.getinfo(member), path.stat().st_size
            most = most_by_ratio(packed)
            if found.compress_type not in _METHODS or found.file_size > most:
                raise ValueError("it is packed by another method, or suspiciously large unpacked")
            with archive.open(found, pwd=password) as opened:
                yield from decoded(opened, path, most=most, lines=most_lines(packed))
    except UserError:
        raise
    # zipfile raises many kinds of errors for damaged, encrypted or unknown content
    except Exception as error:
        raise UserError(
            f"{path} has no {member} that can be read ({error}); unpack it and name the text, "
            "or download it again"
        ) from error


def split(rows: Iterable[Pair], *, held_out: int, seed: int) -> tuple[dict[str, list[Pair]], int]:
    """Distribute the pairs so that the three sets share no source and no target sentence.

    Distinct sources, shuffled, fill first the test set, then the validation set, each with its
    first translation only, because a score counts a sentence once. The validation set skips
    translations that the test set has. Training gets all other pairs whose translation is in
    neither.

    Returns:
        The pairs of each set, of which both small ones have ``held_out``, at least 1; and the
        number of pairs in no set.

    Raises:
        UserError: there are too few distinct sentences.
    """
    translations: dict[str, list[str]] = {}
    for source, target in rows:
        translations.setdefault(source, []).append(target)
    order = list(translations)
    random.Random(seed).shuffle(order)
    small: dict[str, dict[str, str]] = {"test": {}, "valid": {}}
    rest, passed = iter(order), []
    for chosen in small.values():
        others = {target for other in small.values() for target in other.values()}
        for source in rest:
            if translations[source][0] in others:
                passed.append(source)
            else:
                chosen[source] = translations[source][0]
            if len(chosen) == held_out:
                break
    others = {target for chosen in small.values() for target in chosen.values()}
    left = [(source, target) for source in (*passed, *rest) for target in translations[source]]
    sets = {
        "train": [pair for pair in left if pair[1] not in others],
        **{name: list(small[name].items()) for name in ("valid", "test")},
    }
    if not sets["train"]:
        raise UserError(
            f"{len(translations)} distinct source sentences are too few for two sets of {held_out}"
        )
    everything = sum(map(len, translations.values()))
    return sets, everything - sum(map(len, sets.values()))


def write(sets: dict[str, list[Pair]], folder: Path) -> None:
    """Write ``train.en``, ``train.de`` and so on, which may already exist.

    Raises:
        UserError: the folder has another split, whose test set may be in use.
    """
    files = {
        folder / f"{name}.{lang}": [pair[side] for pair in pairs]
        for name, pairs in sets.items()
        for side, lang in enumerate(("en", "de"))
    }
    for path, lines in files.items():
        if path.exists() and list(read_lines(path, may_be_empty=True)) != lines:
            raise UserError(
                f"{path} was split from another table of pairs: choose another --out, or move "
                f"{folder} away"
            )
    for path, lines in files.items():
        write_lines(lines, path)
