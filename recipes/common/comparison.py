"""Whether models translate differently from one of them: sacreBLEU's paired bootstrap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.evaluation import significance
from recipes.common import scoring
from recipes.common.settings import Model

TWINS = ("euclidean_prenorm", "euclidean")
"""How the names of the models begin that others are compared with, the first that there is."""


def baseline_of(models: Sequence[Model]) -> str | None:
    """The pre-norm twin, or else the other one; none where no other model is compared with it."""
    names = [model.name for model in models]
    twins = [name for twin in TWINS for name in names if name.startswith(twin)]
    return twins[0] if twins and len(models) > 1 else None


def against(
    baseline: str, outputs: Mapping[str, Path], references: Path, *, lowercase: bool = False
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """How likely each model's difference from one of them is by the choice of sentences alone.

    Args:
        baseline: its name.
        outputs: what ``fairseq-generate`` wrote of each model, that one too, by their names.
        references: raw, one a line.
        lowercase: take no notice of case.

    Returns:
        p of each model but the baseline by metric, ``bleu`` and ``chrf``; and the signatures.

    Raises:
        UserError: a file has another number of sentences.
    """
    theirs, lines = scoring.pairs(outputs[baseline], references)
    found: dict[str, dict[str, float]] = {}
    signatures: dict[str, str] = {}
    for name, output in outputs.items():
        if name != baseline:
            ours, _ = scoring.pairs(output, references)
            bleu, chrf = significance.compare(theirs, ours, lines, lowercase=lowercase)
            found[name] = {"bleu": round(float(bleu.p), 4), "chrf": round(float(chrf.p), 4)}
            signatures = {"bleu": bleu.signature, "chrf": chrf.signature}
    return found, signatures


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
        f"in brackets p of the difference from `{baseline}`: how likely so large a one is by the "
        "choice of sentences alone, one-sided, as sacreBLEU's paired bootstrap counts it (where "
        "the difference is clear, a two-sided p is about twice that) and not corrected for the "
        f"number of comparisons, {signed}"
    )
