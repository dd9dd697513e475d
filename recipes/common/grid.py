"""Models over seeds: which trainings there are, means and spreads, and what is told by chance.

A grid has a cell for each width or data set; in each, every model is tried at the same rates.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hyptrans.support.extras import require
from hyptrans.support.tables import markdown
from recipes.common import results
from recipes.common.exact import MODELS, TWIN, Results, Training, best, rate_trials


@dataclass(frozen=True)
class Grid:
    """Trainings with one seed at each rate, and with the other seeds at the best.

    Attributes:
        title: what the cells are.
        training: of a model, in a cell, at a rate, with the first seed.
        valid: the set that rates are chosen by.
        test: the set that the table is of.
        only: the models of a cell, where not all are tried in it.
        hardest: the kind of answers that has a column of its own.
    """

    title: str
    cells: Sequence[str]
    rates: Sequence[float]
    seeds: Sequence[int]
    training: Callable[[str, str, float], Training]
    valid: str
    test: str
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hardest: str = ""

    def trainings(self, lines: Results) -> list[Training]:
        """All that can be named so far."""
        tried: list[Training] = []
        others: list[Training] = []
        for cell in self.cells:
            for model in self.only.get(cell, MODELS):
                trials = self._trials(lines, cell, model)
                tried += trials
                if chosen := best(lines, trials, self.valid):
                    others += [replace(chosen, seed=seed) for seed in self.seeds[1:]]
        return [*tried, *sorted(others, key=lambda training: training.seed)]

    def _trials(self, lines: Results, cell: str, model: str) -> list[Training]:
        return rate_trials(lines, partial(self.training, model, cell), self.rates, self.valid)

    def table(self, lines: Results) -> str:
        """Exact match on the test set by cell and model, at each model's best rate."""
        known = {line["name"]: line for line in lines}
        rows = []
        for cell in self.cells:
            models = self.only.get(cell, MODELS)
            chosen = [best(lines, self._trials(lines, cell, model), self.valid) for model in models]
            names = [replace(t, seed=seed).name for t in chosen if t for seed in self.seeds]
            finals = [known[name] for name in names if name in known]
            found = by_model(finals, self._right)
            hardest = by_model(finals, partial(self._right, kind=self.hardest or "all"))
            rate = {line["model"]: f"{line['rate']:g}" for line in finals}
            p = against_twin(found)
            for model, scores in found.items():
                shown = f"{p[model]:.3f}" if model in p else ""
                row = [cell, model, rate[model], len(scores), results.spread(scores)]
                beside = [f"{statistics.fmean(hardest[model]):.1f}"] if self.hardest else []
                rows.append([*row, *beside, shown])
        if not rows:
            return results.NOT_MEASURED
        beside = [self.hardest.replace("_", " ")] if self.hardest else []
        header = [self.title, "model", "rate", "seeds", "exact match", *beside, "p"]
        return (
            f"{markdown(header, rows, texts=2)}\n\nPercent of exact matches on the test set after "
            f"{lines[0]['updates']:,} updates, mean ± standard deviation over seeds, at the rate "
            "that is best on the validation set; p: of the difference from the twin in the same "
            f"{self.title}, by permutation of seeds, two-sided, Holm's correction."
        )

    def _right(self, line: Mapping[str, Any], kind: str = "all") -> float:
        return float(line["exact"][self.test][kind]) if line["exact"] else 0.0


def by_model(
    results: Results, value: Callable[[Mapping[str, Any]], float]
) -> dict[str, list[float]]:
    """A value of each line, sorted by model in the order of the tables and then by seed."""
    found: dict[str, list[float]] = {}
    for model in MODELS:
        lines = sorted(
            (x for x in results if x.get("model") == model), key=lambda line: line["seed"]
        )
        if lines:
            found[model] = [value(line) for line in lines]
    return found


def against_twin(found: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """How likely each model's difference from the twin is by the choice of seeds alone: p.

    The part of all ways to deal the seeds' scores to the two models that gives means as far apart,
    corrected for the number of models (Holm 1979). None without several seeds.
    """
    stats = require("scipy.stats", "probing")

    def difference(one: Any, other: Any, axis: int) -> Any:
        return one.mean(axis=axis) - other.mean(axis=axis)

    p = {
        model: float(stats.permutation_test((scores, found[TWIN]), difference).pvalue)
        for model, scores in found.items()
        if model != TWIN and min(len(scores), len(found.get(TWIN, ()))) > 1
    }
    corrected, least = {}, 0.0
    for number, model in enumerate(sorted(p, key=lambda model: p[model])):
        least = max(least, min(1.0, p[model] * (len(p) - number)))
        corrected[model] = least
    return corrected
