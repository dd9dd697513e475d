"""Models over cells (widths, data sets) and seeds: which trainings there are, and their table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hyptrans.support.tables import markdown
from recipes.common import results, seeds
from recipes.common.exact import MODELS, TWINS, Results, Training, right, score_in
from recipes.common.search import search


@dataclass(frozen=True)
class Grid:
    """Trainings with one seed at each rate, and with all seeds where a rate may be the best.

    A rate is as good as the mean over its seeds. So the rate whose first seed is best gets all
    seeds, and then each other one whose first seed is better than that mean.

    Attributes:
        title: what the cells are.
        training: of a model, in a cell, at a rate, with the first seed.
        valid: the set that rates are chosen by.
        test: the set that the table is of.
        only: the models of a cell that does not try all.
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
        """Return all that can be named so far."""
        score = score_in(lines, self.valid)
        tried: list[Training] = []
        seeded: list[Training] = []
        for cell in self.cells:
            for model in self.models(cell):
                trials = self._trials(lines, cell, model)
                tried += trials
                if all(score(one) is not None for one in trials):
                    groups = self._seeded(lines, cell, model)
                    seeded += [one for group in groups for one in group[1:]]
        return [*tried, *sorted(seeded, key=lambda training: training.seed)]

    def models(self, cell: str) -> Sequence[str]:
        """Return the models that are tried in a cell."""
        return self.only.get(cell, MODELS)

    def best(self, lines: Results, cell: str, model: str) -> list[Training]:
        """Return all seeds of the rate that is best so far, by the mean over the seeds done."""
        groups = self._seeded(lines, cell, model)
        means = [self._mean(lines, group) for group in groups]
        # the first group, where none is done
        return groups[means.index(max(means))] if groups else []

    def twin(self, lines: Results, cell: str) -> str:
        """Return the Transformer that is better on the validation set of a cell so far."""
        own = [model for model in TWINS if model in self.models(cell)]
        best = {model: self._mean(lines, self.best(lines, cell, model)) for model in own}
        return max(own, key=lambda model: best[model], default="")

    def is_open(self, lines: Results, cell: str, model: str) -> bool:
        """Return whether another rate may turn out to be the best."""
        score = score_in(lines, self.valid)
        left = [*self._trials(lines, cell, model)]
        left += [one for group in self._seeded(lines, cell, model) for one in group]
        return any(score(one) is None for one in left)

    def table(self, lines: Results, cells: Sequence[str] = ()) -> str:
        """Write exact match on the test set by cell (default: all) and model, at its best rate."""
        known = {line["name"]: line for line in lines}
        rows: list[list[object]] = []
        floors: list[float] = []
        shown: list[Mapping[str, Any]] = []
        for cell in cells or self.cells:
            names = {model: self.best(lines, cell, model) for model in self.models(cell)}
            finals = [known[one.name] for of in names.values() for one in of if one.name in known]
            found = by_model(finals, partial(right, subset=self.test))
            hardest = by_model(finals, partial(right, subset=self.test, kind=self.hardest or "all"))
            twin = self.twin(lines, cell)
            p = seeds.against(twin, found)
            floors += seeds.floors(p, twin, found)
            shown += finals
            for model, scores in found.items():
                rate = f"{names[model][0].rate:g}"
                rate = f"({rate})" if self.is_open(lines, cell, model) else rate
                row = [cell, model, rate, len(scores), seeds.spread(scores)]
                beside = [f"{statistics.fmean(hardest[model]):.1f}"] if self.hardest else []
                rows.append([*row, *beside, f"{p[model]:.3f}" if model in p else ""])
        if not rows:
            return results.NOT_MEASURED
        beside = [self.hardest.replace("_", " ")] if self.hardest else []
        header = [self.title, "model", "rate", "seeds", "exact match", *beside, "p"]
        return f"{markdown(header, rows, texts=2)}\n\n{self._caption(shown, floors)}"

    def _caption(self, finals: Results, floors: Sequence[float]) -> str:
        return (
            f"Percent of exact matches on the test set after {finals[0]['updates']:,} updates, "
            "mean ± standard deviation over seeds, at the rate whose mean is best on the "
            "validation set (in brackets: its search is open); p: of the difference from the twin "
            f"in the same {self.title}, by permutation of seeds, two-sided, Holm's correction over "
            f"the models of a {self.title}{seeds.at_least(floors)}, and not over the "
            f"{self.title}s; {results.made_by(finals)}."
        )

    def _trials(self, lines: Results, cell: str, model: str) -> list[Training]:
        """Each rate with the first seed; beyond an edge where that seed, or the mean, is best."""
        trial, score = partial(self.training, model, cell), score_in(lines, self.valid)

        def mean(first: Training) -> float | None:
            scores = [score(replace(first, seed=seed)) for seed in self.seeds]
            done = [found for found in scores if found is not None]
            return statistics.fmean(done) if done else None

        tried = [one for by in (score, mean) for one in search(trial, self.rates, by).trials]
        return sorted({one.rate: one for one in tried}.values(), key=lambda one: one.rate)

    def _seeded(self, lines: Results, cell: str, model: str) -> list[list[Training]]:
        """All seeds of each rate that may be the best; nothing while a given rate is not tried."""
        score, groups, highest = score_in(lines, self.valid), [], -1.0
        trials = self._trials(lines, cell, model)
        first = {one: found for one in trials if (found := score(one)) is not None}
        if any(one.rate in self.rates and one not in first for one in trials):
            return []
        for trial in sorted(first, key=lambda one: -first[one]):
            if first[trial] <= highest:
                break
            groups.append([replace(trial, seed=seed) for seed in self.seeds])
            if any(score(one) is None for one in groups[-1]):
                break
            highest = max(highest, self._mean(lines, groups[-1]))
        return groups

    def _mean(self, lines: Results, group: Sequence[Training]) -> float:
        """Mean score on the validation set over all seeds, -1 while one is missing."""
        scores = [found for one in group if (found := score_in(lines, self.valid)(one)) is not None]
        return statistics.fmean(scores) if scores and len(scores) == len(group) else -1.0


def by_model(results: Results, value: Callable[..., float]) -> dict[str, list[float]]:
    """Sort a value of each line by model, in the order of the tables, and then by seed."""
    found: dict[str, list[float]] = {}
    for line in sorted(results, key=lambda line: line.get("seed", 0)):
        found.setdefault(line.get("model", ""), []).append(value(line))
    return {model: found[model] for model in MODELS if model in found}
