"""Scores of ``fairseq-generate`` output, by sacreBLEU itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require


@dataclass(frozen=True)
class Score:
    """A score of sacreBLEU's, never without its signature."""

    value: float
    signature: str


def detokenized(output: Path) -> list[str]:
    """The translations of a file that ``fairseq-generate`` wrote: its ``D-`` lines, by number.

    Raises:
        UserError: there is none, or one is missing or there twice.
    """
    found: dict[int, str] = {}
    for line in output.read_text(encoding="utf-8").split("\n"):
        if line.startswith("D-"):
            number, _, text = line[2:].split("\t", 2)
            if int(number) in found:
                raise UserError(f"{output} has two translations of sentence {number}")
            found[int(number)] = text
    missing = set(range(len(found))) - found.keys()
    if missing or not found:
        first = min(missing, default=0)
        raise UserError(f"{output} has no translation (D- line) of sentence {first}")
    return [found[number] for number in range(len(found))]


def lowercased_bleu(output: Path, references: Path, language: str) -> Score:
    """BLEU of lower-cased text in Moses tokens, as multi-bleu gives it: older papers' figure."""
    moses = require("sacremoses", "data").MosesTokenizer(lang=language)

    def tokens(lines: list[str]) -> list[str]:
        return [moses.tokenize(line, return_str=True, escape=False) for line in lines]

    translations, lines = pairs(output, references)
    metric = BLEU(tokenize="none", lowercase=True, force=True)
    return _score(metric, tokens(translations), tokens(lines))


def chrf(output: Path, references: Path) -> Score:
    """ChrF of a file that ``fairseq-generate`` wrote."""
    return _score(CHRF(), *pairs(output, references))


def score(output: Path, references: Path) -> Score:
    """BLEU of a file that ``fairseq-generate`` wrote against raw references, one a line.

    Raises:
        UserError: their numbers of sentences differ.
    """
    return _score(BLEU(), *pairs(output, references))


def pairs(output: Path, references: Path) -> tuple[list[str], list[str]]:
    """Translations and their references.

    Raises:
        UserError: their numbers of sentences differ.
    """
    translations = detokenized(output)
    lines = references.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(lines) != len(translations):
        raise UserError(
            f"{output} has {len(translations)} translations for {len(lines)} lines of {references}"
        )
    return translations, lines


def _score(metric: BLEU | CHRF, translations: list[str], lines: list[str]) -> Score:
    found = metric.corpus_score(translations, [lines]).score
    return Score(round(found, 2), metric.get_signature().format(short=False))
