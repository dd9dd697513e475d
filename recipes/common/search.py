"""Search for a model's learning rate until the best rate is not at an edge of those tried."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Trial = TypeVar("Trial")


@dataclass(frozen=True)
class Search(Generic[Trial]):
    """Trainings that differ only in their rate.

    Attributes:
        trials: sorted by rate; earlier scores determine those beyond the given rates.
        best: the trial with the best score so far; None until all given rates are tried.
        is_open: a trial is not done yet, so another one may turn out to be the best.
    """

    trials: Sequence[Trial]
    best: Trial | None
    is_open: bool

    @property
    def chosen(self) -> Trial | None:
        """Return the best trial, or None while the search is open."""
        return None if self.is_open else self.best


def search(
    trial: Callable[[float], Trial],
    rates: Sequence[float],
    score: Callable[[Trial], float | None],
) -> Search[Trial]:
    """Try each rate, and continue beyond the lowest or the highest while it is the best.

    Args:
        trial: returns the training at a rate.
        rates: in rising order; the search continues downwards by the factor between the first two
            and upwards by the factor between the last two. A single rate is only tried.
        score: returns a training's score (higher is better), or None if it is not done.
    """
    made = {rate: trial(rate) for rate in rates}
    while True:
        done = {rate: found for rate, one in made.items() if (found := score(one)) is not None}
        is_open, best, beyond = len(done) < len(made), None, None
        if done.keys() >= set(rates):
            best = min(done, key=lambda rate: (-done[rate], rate))
            beyond = None if is_open else _beyond(best, rates, done)
        if beyond is None:
            trials = [made[rate] for rate in sorted(made)]
            return Search(trials, None if best is None else made[best], is_open)
        made[beyond] = trial(beyond)


def _beyond(best: float, rates: Sequence[float], done: dict[float, float]) -> float | None:
    """Return the next rate if the best one is at an edge and better than its neighbour."""
    if len(rates) < 2 or not math.isfinite(done[best]):
        return None
    lowest, second, *_ = ordered = sorted(done)
    if best == ordered[-1]:
        return best * rates[-1] / rates[-2]
    # a model that learns nothing at any rate has equal scores everywhere: don't go lower
    return best * rates[0] / rates[1] if best == lowest and done[best] > done[second] else None
