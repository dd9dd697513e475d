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
from recipes.common.exact import MODELS, TWIN, Results, Training, rate_trials, scores_of


@dataclass(frozen=True)
class Grid:
    """Trainings with one seed at each rate, and with all seeds where a rate may be the best.

    A rate is as good as the mean over its seeds. So the rate whose first seed is best has all, and
    then each other one whose first seed is better than that mean: one lucky seed chooses nothing.

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
        seeded: list[Training] = []
        for cell in self.cells:
            for model in self.models(cell):
                trials = self._trials(lines, cell, model)
                tried += trials
                seeded += [one for group in self._seeded(lines, trials) for one in group[1:]]
        return [*tried, *sorted(seeded, key=lambda training: training.seed)]

    def models(self, cell: str) -> Sequence[str]:
        """Those that are tried in a cell."""
        return self.only.get(cell, MODELS)

    def _trials(self, lines: Results, cell: str, model: str) -> list[Training]:
        return rate_trials(lines, partial(self.training, model, cell), self.rates, self.valid)

    def _seeded(self, lines: Results, trials: Sequence[Training]) -> list[list[Training]]:
        """All seeds of each rate that may be the best; nothing while a rate is not tried."""
        first = scores_of(lines, trials, self.valid)
        if first is None:
            return []
        groups: list[list[Training]] = []
        mean = -1.0
        for score, trial in sorted(zip(first, trials, strict=True), key=lambda pair: -pair[0]):
            if score <= mean:
                break
            groups.append([replace(trial, seed=seed) for seed in self.seeds])
            means = scores_of(lines, groups[-1], self.valid)
            if means is None:
                break
            mean = max(mean, means[0])
        return groups

    def best(self, lines: Results, cell: str, model: str) -> list[Training]:
        """All seeds of the rate that is best so far."""
        groups = self._seeded(lines, self._trials(lines, cell, model))
        means = [scores_of(lines, group, self.valid) or [-1.0] for group in groups]
        # the first of them, where none is done
        return groups[means.index(max(means))] if groups else []

    def _open(self, lines: Results, cell: str, model: str) -> bool:
        """Whether another rate may turn out to be the best."""
        groups = self._seeded(lines, self._trials(lines, cell, model))
        return any(scores_of(lines, group, self.valid) is None for group in groups)

    def table(self, lines: Results, cells: Sequence[str] = ()) -> str:
        """Exact match on the test set by cell (default: all) and model, at each one's best rate."""
        known = {line["name"]: line for line in lines}
        rows = []
        for cell in cells or self.cells:
            groups = [self.best(lines, cell, model) for model in self.models(cell)]
            names = [one.name for group in groups for one in group]
            finals = [known[name] for name in names if name in known]
            found = by_model(finals, self._right)
            hardest = by_model(finals, partial(self._right, kind=self.hardest or "all"))
            rate = {line["model"]: f"{line['rate']:g}" for line in finals}
            rate |= {model: f"({rate[model]})" for model in rate if self._open(lines, cell, model)}
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
            "whose mean is best on the validation set (in brackets: another one is still to be "
            "tried with all seeds); p: of the difference from the twin in the "
            f"same {self.title}, by permutation of seeds, two-sided, Holm's correction."
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


def by_chance(some: Sequence[float], others: Sequence[float]) -> float:
    """Part of the ways to deal all scores to the two that gives means as far apart.

    Two-sided: twice that of the side on which they are, as scipy has it.
    """
    stats = require("scipy.stats", "probing")

    def difference(one: Any, other: Any, axis: int) -> Any:
        return one.mean(axis=axis) - other.mean(axis=axis)

    return float(stats.permutation_test((some, others), difference).pvalue)


def against_twin(found: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """How likely each model's difference from the twin is by the choice of seeds alone: p.

    The part of all ways to deal the seeds' scores to the two models that gives means as far apart,
    corrected for the number of models (Holm 1979). None without several seeds.
    """
    p = {
        model: by_chance(scores, found[TWIN])
        for model, scores in found.items()
        if model != TWIN and min(len(scores), len(found.get(TWIN, ()))) > 1
    }
    corrected, least = {}, 0.0
    for number, model in enumerate(sorted(p, key=lambda model: p[model])):
        least = max(least, min(1.0, p[model] * (len(p) - number)))
        corrected[model] = least
    return corrected
