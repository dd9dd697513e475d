"""Scores of what ``fairseq-generate`` wrote, and how likely they differ by chance: sacreBLEU's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from hyptrans.evaluation import scores, significance
from hyptrans.evaluation.scores import Score
from hyptrans.support.extras import require

METRICS = {"bleu": BLEU, "chrf": CHRF}
TOKENS = "bleu_tokens"
"""BLEU of lower-cased text in Moses tokens, as multi-bleu gives it: older papers' figure."""
TWINS = ("euclidean_prenorm", "euclidean")
"""How the names of the models begin that others are compared with, the first that there is."""


def score(metric: str, output: Path, references: Path, *, lowercase: bool = False) -> Score:
    """A score of raw text.

    Args:
        metric: of ``METRICS``, or ``TOKENS``.
        output: what ``fairseq-generate`` wrote.
        references: one a line, in a file whose name ends with the language.
        lowercase: take no notice of case.

    Raises:
        UserError: their numbers of sentences differ.
    """
    translations, lines = pairs(output, references)
    if metric != TOKENS:
        return scores.score_by(METRICS[metric](lowercase=lowercase), translations, lines)
    moses = require("sacremoses", "data").MosesTokenizer(lang=references.suffix[1:])
    ours, theirs = (
        [moses.tokenize(line, return_str=True, escape=False) for line in text]
        for text in (translations, lines)
    )
    return scores.score_by(BLEU(tokenize="none", lowercase=True, force=True), ours, theirs)


def pairs(output: Path, references: Path) -> tuple[list[str], list[str]]:
    """Translations and their references.

    Raises:
        UserError: their numbers of sentences differ.
    """
    translations, lines = scores.detokenized(output), scores.read_text(references)
    scores.check_lengths(translations, output, lines, references)
    return translations, lines


def baseline_of(names: Sequence[str]) -> str | None:
    """The pre-norm twin, or else the other one; none where no other model is compared with it."""
    twins = [name for twin in TWINS for name in names if name.startswith(twin)]
    return twins[0] if twins and len(names) > 1 else None


def compare(
    baseline: Path, output: Path, references: Path, *, lowercase: bool = False
) -> dict[str, significance.Comparison]:
    """How likely the difference of two outputs is by the choice of sentences alone, by metric.

    Raises:
        UserError: a file has another number of sentences.
    """
    theirs, lines = pairs(baseline, references)
    ours, _ = pairs(output, references)
    found = significance.compare(theirs, ours, lines, lowercase=lowercase)
    return dict(zip(METRICS, found, strict=True))


def cell(value: float, p: float | None) -> str:
    """A score of a table, with the p of its difference behind it if there is one."""
    return f"{value:.1f}" if p is None else f"{value:.1f} ({p:.3f})"


def caption(found: Mapping[str, Any]) -> str:
    """What the numbers in brackets are; empty where results have none, as older ones."""
    if "baseline" not in found:
        return ""
    return about(found["baseline"], found["comparison_signatures"].values())


def about(baseline: str, signatures: Iterable[str]) -> str:
    """What p of a table is."""
    signed = ", ".join(f"`{one}`" for one in signatures)
    return (
        f"in brackets p of the difference from `{baseline}` by the choice of sentences alone "
        f"(sacreBLEU's paired bootstrap: one-sided, not corrected), {signed}"
    )
