"""Scores of ``fairseq-generate`` output, by sacreBLEU itself."""

from __future__ import annotations

from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from hyptrans.evaluation import scores
from hyptrans.evaluation.scores import Score, detokenized
from hyptrans.support.extras import require


def lowercased_bleu(output: Path, references: Path, language: str) -> Score:
    """BLEU of lower-cased text in Moses tokens, as multi-bleu gives it: older papers' figure."""
    moses = require("sacremoses", "data").MosesTokenizer(lang=language)

    def tokens(lines: list[str]) -> list[str]:
        return [moses.tokenize(line, return_str=True, escape=False) for line in lines]

    translations, lines = pairs(output, references)
    metric = BLEU(tokenize="none", lowercase=True, force=True)
    return scores.score_by(metric, tokens(translations), tokens(lines))


def chrf(output: Path, references: Path, *, lowercase: bool = False) -> Score:
    """ChrF of a file that ``fairseq-generate`` wrote, with the errors of :func:`score`."""
    return scores.score_by(CHRF(lowercase=lowercase), *pairs(output, references))


def score(output: Path, references: Path, *, lowercase: bool = False) -> Score:
    """BLEU of a file that ``fairseq-generate`` wrote against raw references, one a line.

    Raises:
        UserError: their numbers of sentences differ.
    """
    return scores.score_by(BLEU(lowercase=lowercase), *pairs(output, references))


def pairs(output: Path, references: Path) -> tuple[list[str], list[str]]:
    """Translations and their references.

    Raises:
        UserError: their numbers of sentences differ.
    """
    translations, lines = detokenized(output), scores.read_text(references)
    scores.check_lengths(translations, output, lines, references)
    return translations, lines
