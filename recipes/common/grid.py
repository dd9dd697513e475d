"""Plan and tabulate trainings over a grid of models, cells (widths or data sets) and seeds."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from recipes.common import exact, results
from recipes.common.exact import MODELS, TEST, TWINS, VALID, Results, Training, right, score_in
from recipes.common.results import markdown
from recipes.common.search import search


@dataclass(frozen=True)
class Choice:
    """What the results so far say about a model's rate in a cell.

    Attributes:
        trials: the first seed's trainings, sorted by rate.
        seeded: the other seeds of each rate that may be the best, once all trials are done.
        best: all seeds of the best rate so far, by the mean over the seeds.
        mean: the mean validation score of ``best``, -1 if no rate has all seeds.
        is_open: a training is not done yet, so another rate may turn out to be the best.
    """

    trials: Sequence[Training]
    seeded: Sequence[Training]
    best: Sequence[Training]
    mean: float
    is_open: bool


@dataclass(frozen=True)
class Grid:
    """Trainings with one seed at each rate, and with all seeds at rates that may be the best.

    The score of a rate is the mean over its seeds. So the rate whose first seed is best gets all
    seeds, then each other rate whose first seed is better than that mean.

    Attributes:
        title: what the cells are.
        training: returns the first seed's training of a model, in a cell, at a rate.
        only: the models of each cell that does not try all.
        hardest: the kind of answers that gets its own column.
        tests: the test sets by the columns of their scores; p is that of the first.
    """

    title: str
    cells: Sequence[str]
    rates: Sequence[float]
    seeds: Sequence[int]
    training: Callable[[str, str, float], Training]
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hardest: str = ""
    tests: Mapping[str, str] = field(default_factory=lambda: {"exact match": TEST})

    def trainings(self, lines: Results) -> list[Training]:
        """Return all trainings known so far."""
        found = [
            self.choice(lines, cell, model) for cell in self.cells for model in self.models(cell)
        ]
        tried = [trial for choice in found for trial in choice.trials]
        seeded = [one for choice in found for one in choice.seeded]
        return [*tried, *sorted(seeded, key=lambda training: training.seed)]

    def models(self, cell: str) -> Sequence[str]:
        """Return the models to try in a cell."""
        return self.only.get(cell, MODELS)

    def twin(self, lines: Results, cell: str) -> str:
        """Return the better Transformer so far on a cell's validation set."""
        own = [model for model in TWINS if model in self.models(cell)]
        return max(own, key=lambda model: self.choice(lines, cell, model).mean, default="")

    def choice(self, lines: Results, cell: str, model: str) -> Choice:
        """Return what the results so far say about the rate of a model in a cell."""
        score, trial = score_in(lines, VALID), partial(self.training, model, cell)

        def seeds_of(first: Training) -> list[Training]:
            return [replace(first, seed=seed) for seed in self.seeds]

        def scores(several: Sequence[Training]) -> list[float]:
            return [found for one in several if (found := score(one)) is not None]

        def mean(first: Training) -> float | None:
            return statistics.fmean(done) if (done := scores(seeds_of(first))) else None

        # extend an edge that is best by the first seed or by the mean
        searches = (search(trial, self.rates, by) for by in (score, mean))
        tried = {one.rate: one for found in searches for one in found.trials}
        trials = [tried[rate] for rate in sorted(tried)]
        first = {one: found for one in trials if (found := score(one)) is not None}
        seeded: list[Training] = []
        best: list[Training] = []
        highest = -1.0
        if all(tried[rate] in first for rate in self.rates):
            for one in sorted(first, key=lambda one: -first[one]):
                if first[one] <= highest:
                    break
                own = seeds_of(one)
                seeded += own[1:]
                best = best or own
                # without all seeds there is no mean
                if len(done := scores(own)) < len(own):
                    break
                if statistics.fmean(done) > highest:
                    best, highest = own, statistics.fmean(done)
        is_open = len(scores([*trials, *seeded])) < len(trials) + len(seeded)
        return Choice(trials, seeded if len(first) == len(trials) else [], best, highest, is_open)

    def finals(self, lines: Results, cell: str) -> Results:
        """Return the lines of all models at their best rates in a cell, by model and seed."""
        done = {line["name"]: line for line in lines}
        choices = [self.choice(lines, cell, model) for model in self.models(cell)]
        best = [one.name for choice in choices for one in choice.best]
        return [done[name] for name in best if name in done]

    def table(self, lines: Results) -> str:
        """Write exact match on the test sets by cell and model, at its best rate."""
        groups = {}
        for cell in self.cells:
            untuned = [x for x in self.models(cell) if self.choice(lines, cell, x).is_open]
            groups[cell] = (self.finals(lines, cell), self.twin(lines, cell), untuned)
        shown = [line for finals, *_ in groups.values() for line in finals]
        if not shown:
            return results.NOT_MEASURED
        score, hardest = next(iter(self.tests)), self.hardest.replace("_", " ")
        values = {name: partial(right, subset=subset) for name, subset in self.tests.items()}
        if hardest:
            values[hardest] = partial(right, subset=self.tests[score], kind=self.hardest)
        frame, at_least = exact.compared(self.title, groups, values, score)
        if hardest:
            frame[hardest] = frame[hardest].map(statistics.fmean)
        sets, of = ("sets", f" on {score}") if len(self.tests) > 1 else ("set", "")
        return (
            f"{markdown(frame, {hardest: '.1f', 'p': '.3f'}, texts=2)}\n\n"
            f"Percent of exact matches on the test {sets} after {shown[0]['updates']:,} updates, "
            "mean ± standard deviation over seeds, at the rate whose mean is best on the "
            f"validation set (in brackets: not tuned); p: two-sided permutation test of seeds{of} "
            f"against the twin in the same {self.title}, Holm-corrected over the models of a "
            f"{self.title}{at_least}, not over the {self.title}s; "
            f"{results.made_by(shown)}."
        )
