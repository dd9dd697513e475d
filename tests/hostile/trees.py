"""Trees in CoNLL-U that are small and hold much, or whose heads are no tree."""

import gzip
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.hostile.running import Hostile, of_each_kind, ordinary
from tests.probing.helpers.trees import rows


def trees(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One danger in each file."""
    whole = folder / "whole"
    whole.write_text(conllu([2, 0, 2]))
    read(whole)  # what is imported here, no fork imports
    return [ordinary(partial(read, whole)), *of_each_kind(TREES, read, draw, folder, count)]


def read(path: Path) -> None:
    """As ``hyptrans probe run`` does."""
    from probing.text.trees import read_conllu

    list(read_conllu(path))


def conllu(heads: list[int], sent_id: str = "s") -> str:
    return f"# sent_id = {sent_id}\n{rows(*heads)}"


_COMMENT = b"# " + b"x" * 1000 + b"\n"
TREES: dict[str, Callable[[random.Random], bytes]] = {
    "a line without end": lambda draw: gzip.compress(
        b"# " + b"x" * draw.randint(5 << 20, 99 << 20), 1
    ),
    "lines without end": lambda draw: gzip.compress(_COMMENT * draw.randint(70_000, 99_000), 1),
    "a chain": lambda draw: conllu([*range(2, draw.randint(9_000, 12_000)), 0]).encode(),
    "a longer chain": lambda draw: gzip.compress(
        conllu([*range(2, draw.randint(900_000, 1_000_000)), 0]).encode(), 1
    ),
    "a star": lambda draw: gzip.compress(
        conllu([0, *[1] * draw.randint(300_000, 400_000)]).encode()
    ),
    "a long word": lambda draw: gzip.compress(
        conllu([0, 1]).replace("\tw", f"\t{'w' * draw.randint(1_000_000, 4_000_000)}").encode(), 1
    ),
    "many columns": lambda draw: gzip.compress(
        conllu([0, 1]).replace("\tw", "\tw" * draw.randint(1_000_000, 2_000_000)).encode(), 1
    ),
    "a cycle": lambda draw: conllu([0, *range(3, draw.randint(9_000, 12_000)), 2]).encode(),
    "a name for the terminal": lambda draw: conllu(
        [0], draw.choice(["\x1b[31mx", "\x1b]0;x\x07", "x\u202ey"])
    ).encode(),
    "numbers of words": lambda draw: (
        conllu([0, 1]).replace("2\tw", f"{draw.choice(['2-' + '9' * 99, '9' * 5000, '2.'])}\tw")
    ).encode(),
    "heads": lambda draw: conllu([0, draw.choice([10**400, -1, 3])]).encode(),
}
