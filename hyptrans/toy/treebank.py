"""Build the toy treebank: parallel text of English and Tovari with gold trees for both sides.

The same settings give the same bytes. ``valid`` and ``test`` are drawn first, so they are the same
for every size of ``train``; no English and no Tovari sentence occurs twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from hyptrans.toy.grammar import Sampler
from hyptrans.toy.languages import english, tovari
from hyptrans.toy.trees import Word, conllu, text

SOURCE, TARGET = "en", "qtv"  # qtv: a code of the range kept for private use
SPLITS = ("valid", "test", "train")
FORMAT = 2  # raised when the same settings begin to give other sentences
LEAST_WORDS = 8
"""Lower bound of ``max_words``; with fewer, some kinds of sentences would never fit."""


@dataclass(frozen=True)
class Settings:
    """All that decides the sentences; sizes are in pairs, ``max_words`` counts punctuation."""

    train: int = 20000
    valid: int = 400
    test: int = 500
    max_words: int = 12
    seed: int = 1


@dataclass(frozen=True)
class Pair:
    """One sentence in both languages, as trees."""

    source: Word
    target: Word


def pairs(settings: Settings) -> Iterator[Pair]:
    """Yield distinct sentence pairs endlessly, in an order fixed by the seed."""
    sampler = Sampler(settings.seed)
    seen: set[str] = set()
    while True:
        meaning = sampler.sentence()
        pair = Pair(english(meaning), tovari(meaning))
        written = {f"{SOURCE} {text(pair.source)}", f"{TARGET} {text(pair.target)}"}
        words = max(len(list(tree.in_order())) for tree in (pair.source, pair.target))
        if words <= settings.max_words and not written & seen:
            seen |= written
            yield pair


def write(out: Path, settings: Settings, *, overwrite: bool = False) -> bool:
    """Write the treebank into ``out``; return False if it already exists and nothing was done.

    Raises:
        UserError: ``out`` holds something else, or another run is writing to it.
    """
    sides = [f"{language}{end}" for language in (SOURCE, TARGET) for end in ("", ".conllu")]
    files = [out / f"{split}.{side}" for split in SPLITS for side in sides]
    made_from = {"format": FORMAT, **asdict(settings)}
    step = steps.Step("toy", files, partial(_write, out, settings), made_from)
    with steps.alone(out):
        if steps.finished(step, out) is not None:
            return False
        found = next((path for path in files if path.exists()), None)
        if found and not overwrite:
            raise UserError(
                f"{out} holds {found.name} of other settings, of an unfinished run or not made "
                "here; choose another --out, or replace it with --overwrite"
            )
        steps.make(step, out)
    return True


def _write(out: Path, settings: Settings) -> None:
    drawn = pairs(settings)
    for split in SPLITS:
        made = [next(drawn) for _ in range(getattr(settings, split))]
        trees = {SOURCE: [(p.source, p.target) for p in made]}
        trees[TARGET] = [(p.target, p.source) for p in made]
        for language, both in trees.items():
            blocks = (conllu(t, f"{split}-{language}-{i}", o) for i, (t, o) in enumerate(both, 1))
            lines = (f"{text(tree)}\n" for tree, _ in both)
            write_whole(out / f"{split}.{language}", "".join(lines))
            write_whole(out / f"{split}.{language}.conllu", "".join(blocks))
