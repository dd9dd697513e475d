"""Whether two trainings of the same seed translate differently: sacreBLEU's paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.evaluation import significance
from recipes.common import scoring
from recipes.study.findings.finals import Line, best_twin, chosen


@dataclass(frozen=True)
class Pair:
    """Two final trainings of the same seed."""

    model: Line
    baseline: Line

    @property
    def name(self) -> str:
        """What the line of the results is called."""
        names = (line["name"].removeprefix("final-") for line in (self.model, self.baseline))
        return f"comparison-{'-'.join(names)}"


def pairs(lines: Sequence[Line]) -> list[Pair]:
    """What is to be compared and is not yet: all models with the better twin, seed by seed."""
    best = {model: setting.finished for model, setting in chosen(lines).items()}
    twin = best_twin(lines)
    found = [
        Pair(one, other)
        for model in best
        for one in best[model]
        for other in best.get(twin or "", [])
        if model != twin and one["seed"] == other["seed"]
    ]
    done = {line["name"] for line in lines}
    return [pair for pair in found if pair.name not in done]


def compare(pair: Pair, outputs: tuple[Path, Path], references: Path) -> dict[str, Any]:
    """A line of the results: scores of both, and how likely their difference is by chance.

    Args:
        pair: the trainings.
        outputs: what ``fairseq-generate`` wrote, of the model and of the baseline.
        references: raw, one a line.

    Raises:
        UserError: a file has another number of sentences.
    """
    translations, lines = scoring.pairs(outputs[0], references)
    others, _ = scoring.pairs(outputs[1], references)
    bleu, chrf = significance.compare(others, translations, lines)
    return {
        "name": pair.name,
        "stage": "comparison",
        "model": pair.model["model"],
        "baseline": pair.baseline["model"],
        "seed": pair.model["seed"],
        "trainings": [pair.model["name"], pair.baseline["name"]],
        "scores": {"bleu": _measured(bleu), "chrf": _measured(chrf)},
        "signatures": {"bleu": bleu.signature, "chrf": chrf.signature},
    }


def _measured(found: significance.Comparison) -> dict[str, float]:
    baseline, model = found.values
    return {
        "model": round(float(model), 2),
        "baseline": round(float(baseline), 2),
        "p": round(float(found.p), 4),
    }
