"""Builds the toy treebank: parallel text of English and Tovari with gold trees for both sides.

The same settings give the same bytes. ``valid`` and ``test`` are drawn first, so they are the same
for every size of ``train``; no English and no Tovari sentence occurs twice.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_json, write_whole
from hyptrans.toy.english import english
from hyptrans.toy.grammar import Sampler
from hyptrans.toy.tovari import tovari
from hyptrans.toy.trees import Word, conllu, text

SOURCE, TARGET = "en", "qtv"  # qtv: a code of the range kept for private use
SPLITS = ("valid", "test", "train")
MANIFEST = "manifest.json"
FORMAT = 1  # raised when the same settings begin to give other sentences


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
        wrong = [
            f"--{name} {getattr(self, name)} (at least 1)"
            for name in SPLITS
            if getattr(self, name) < 1
        ]
        if self.max_words < 8:
            wrong.append(f"--max-words {self.max_words} (at least 8)")
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
        words = max(sum(1 for _ in tree.in_order()) for tree in (pair.source, pair.target))
        if words <= settings.max_words and not written & seen:
            seen |= written
            yield pair


def build(settings: Settings) -> dict[str, list[Pair]]:
    """The three splits."""
    settings.check()
    drawn = pairs(settings)
    return {split: [next(drawn) for _ in range(getattr(settings, split))] for split in SPLITS}


def write(out: Path, settings: Settings, *, overwrite: bool = False) -> bool:
    """Write the treebank into ``out``; False if it is there already and nothing was done.

    Every file appears whole, and the manifest, with their sizes and hashes, last.

    Raises:
        UserError: the settings are out of range, or ``out`` holds something else.
    """
    settings.check()
    if _complete(out, settings) and not overwrite:
        return False
    names = [name for split in SPLITS for name in _names(split)]
    found = [name for name in [*names, MANIFEST] if (out / name).exists()]
    if found and not overwrite:
        raise UserError(
            f"{out} holds {found[0]} of other settings, of an unfinished run or not made here; "
            "choose another --out, or replace it with --overwrite"
        )
    built = build(settings)
    (out / MANIFEST).unlink(missing_ok=True)
    for split, sentences in built.items():
        _write_split(out, split, sentences)
    manifest = _manifest(out, settings, built)
    write_json(out / MANIFEST, manifest)
    return True


def _names(split: str) -> list[str]:
    return [f"{split}.{language}{end}" for language in (SOURCE, TARGET) for end in ("", ".conllu")]


def _write_split(folder: Path, split: str, sentences: list[Pair]) -> None:
    trees: dict[str, Callable[[Pair], tuple[Word, Word]]] = {
        SOURCE: lambda pair: (pair.source, pair.target),
        TARGET: lambda pair: (pair.target, pair.source),
    }
    for language, both in trees.items():
        lines, blocks = [], []
        for i, pair in enumerate(sentences, 1):
            tree, other = both(pair)
            lines.append(text(tree) + "\n")
            blocks.append(conllu(tree, f"{split}-{language}-{i}", other))
        write_whole(folder / f"{split}.{language}", "".join(lines))
        write_whole(folder / f"{split}.{language}.conllu", "".join(blocks))


def _manifest(folder: Path, settings: Settings, built: dict[str, list[Pair]]) -> dict[str, object]:
    numbers = {}
    for split, sentences in built.items():
        words = [sum(1 for _ in pair.source.in_order()) for pair in sentences]
        numbers[split] = {
            "sentences": len(sentences),
            "mean_source_words": round(statistics.mean(words), 2),
            "median_source_depth": statistics.median(pair.source.depth() for pair in sentences),
        }
    names = sorted(name for split in SPLITS for name in _names(split))
    return {
        "format": FORMAT,
        "settings": asdict(settings),
        "splits": numbers,
        "sha256": {name: sha256(folder / name) for name in names},
    }


def _complete(out: Path, settings: Settings) -> bool:
    """Whether ``out`` holds exactly what these settings give."""
    try:
        manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        same = (manifest["format"], manifest["settings"]) == (FORMAT, asdict(settings))
        return same and all(sha256(out / name) == sha for name, sha in manifest["sha256"].items())
    except (OSError, ValueError, KeyError, TypeError):
        return False
