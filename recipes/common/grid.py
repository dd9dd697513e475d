"""Plan and tabulate trainings over a grid of models, cells (widths or data sets) and seeds."""

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
    """Trainings with one seed at each rate, and with all seeds at rates that may be the best.

    The score of a rate is the mean over its seeds. So the rate whose first seed is best gets all
    seeds, then each other rate whose first seed is better than that mean.

    Attributes:
        title: what the cells are.
        training: returns the first seed's training of a model, in a cell, at a rate.
        valid: the set that decides between rates.
        test: the set that the table reports.
        only: the models of each cell that does not try all.
        hardest: the kind of answers that gets its own column.
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
        """Return all trainings known so far."""
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
        """Return the models to try in a cell."""
        return self.only.get(cell, MODELS)

    def best(self, lines: Results, cell: str, model: str) -> list[Training]:
        """Return all seeds of the best rate so far, by the mean over the seeds."""
        groups = self._seeded(lines, cell, model)
        means = [self._mean(lines, group) for group in groups]
        # the first group if none is done
        return groups[means.index(max(means))] if groups else []

    def twin(self, lines: Results, cell: str) -> str:
        """Return the better Transformer so far on a cell's validation set."""
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
        """Return the first seed's trainings; extend an edge that is best by it or by the mean."""
        trial, score = partial(self.training, model, cell), score_in(lines, self.valid)

        def mean(first: Training) -> float | None:
            scores = [score(replace(first, seed=seed)) for seed in self.seeds]
            done = [found for found in scores if found is not None]
            return statistics.fmean(done) if done else None

        tried = [one for by in (score, mean) for one in search(trial, self.rates, by).trials]
        return sorted({one.rate: one for one in tried}.values(), key=lambda one: one.rate)

    def _seeded(self, lines: Results, cell: str, model: str) -> list[list[Training]]:
        """Return all seeds of each rate that may be best; none until all given rates are tried."""
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
        """Return the mean validation score over all seeds, -1 while a seed is missing."""
        scores = [found for one in group if (found := score_in(lines, self.valid)(one)) is not None]
        return statistics.fmean(scores) if scores and len(scores) == len(group) else -1.0


def by_model(results: Results, value: Callable[..., float]) -> dict[str, list[float]]:
    """Group a value of each line by model in the order of the tables, sorted by seed."""
    found: dict[str, list[float]] = {}
    for line in sorted(results, key=lambda line: line.get("seed", 0)):
        found.setdefault(line.get("model", ""), []).append(value(line))
    return {model: found[model] for model in MODELS if model in found}
