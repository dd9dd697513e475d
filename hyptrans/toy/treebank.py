"""Builds the toy treebank: parallel text of English and Tovari with gold trees for both sides.

The same settings give the same bytes. ``valid`` and ``test`` are drawn first, so they are the same
for every size of ``train``; no English and no Tovari sentence occurs twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, read_json, remove, sha256, write_json, write_whole
from hyptrans.toy.grammar import Sampler
from hyptrans.toy.languages import english, tovari
from hyptrans.toy.trees import Word, conllu, text

SOURCE, TARGET = "en", "qtv"  # qtv: a code of the range kept for private use
SPLITS = ("valid", "test", "train")
MANIFEST = "manifest.json"
FORMAT = 2  # raised when the same settings begin to give other sentences
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Settings:
    """What decides the sentences; sizes in sentence pairs, ``max_words`` with punctuation."""

    train: int = 20000
    valid: int = 400
    test: int = 500
    max_words: int = 12
    seed: int = 1

    def check(self) -> None:
        """Raise one UserError that names all settings out of range."""
        least = {**dict.fromkeys(SPLITS, 1), "max_words": 8}
        wrong = [
            f"--{name.replace('_', '-')} {getattr(self, name)} (at least {fewest})"
            for name, fewest in least.items()
            if getattr(self, name) < fewest
        ]
        if wrong:
            raise UserError(f"out of range: {', '.join(wrong)}")


@dataclass(frozen=True)
class Pair:
    """One sentence in both languages, as trees."""

    source: Word
    target: Word


def pairs(settings: Settings) -> Iterator[Pair]:
    """Different sentence pairs without end, in an order fixed by the seed."""
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
    """Write the treebank into ``out``; False if it is there already and nothing was done.

    Every file appears whole, and the manifest, with settings and hashes, last.

    Raises:
        UserError: the settings are out of range, or ``out`` holds something else.
    """
    settings.check()
    sides = [f"{language}{end}" for language in (SOURCE, TARGET) for end in ("", ".conllu")]
    names = [f"{split}.{side}" for split in SPLITS for side in sides]
    found = [name for name in [*names, MANIFEST] if (out / name).exists()]
    if found and not overwrite:
        if _is_complete(out, settings):
            return False
        raise UserError(
            f"{out} holds {found[0]} of other settings, of an unfinished run or not made here; "
            "choose another --out, or replace it with --overwrite"
        )
    remove(out / MANIFEST)
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
    hashes = {name: sha256(out / name) for name in sorted(names)}
    write_json(out / MANIFEST, {"format": FORMAT, "settings": asdict(settings), "sha256": hashes})
    return True


def _is_complete(out: Path, settings: Settings) -> bool:
    """Whether ``out`` holds exactly what these settings give."""
    try:
        manifest = read_json(read_bytes(out / MANIFEST, _MOST_BYTES).decode())
        same = (manifest["format"], manifest["settings"]) == (FORMAT, asdict(settings))
        return same and all(sha256(out / name) == sha for name, sha in manifest["sha256"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
