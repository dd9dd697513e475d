"""Learning rates that are tried for a model, until the best of them is not at an edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Trial = TypeVar("Trial")


@dataclass(frozen=True)
class Search(Generic[Trial]):
    """Trainings that differ in their rate.

    Attributes:
        trials: by rising rate; those beyond the rates that were given follow from earlier scores.
        best: the one with the best score so far; None until the given rates are tried.
        is_open: a trial is still to be done, so another one may turn out to be the best.
    """

    trials: Sequence[Trial]
    best: Trial | None
    is_open: bool


def search(
    trial: Callable[[float], Trial],
    rates: Sequence[float],
    score: Callable[[Trial], float | None],
) -> Search[Trial]:
    """Try each rate, and go on beyond the lowest or the highest while it is the best.

    Args:
        trial: the training at a rate.
        rates: rising, two at least; the search goes on by the factor of the first two downwards
            and by that of the last two upwards.
        score: of a training, the higher the better; None while it is not done.
    """
    made = {rate: trial(rate) for rate in rates}
    while True:
        scores = {rate: score(one) for rate, one in made.items()}
        done = {rate: found for rate, found in scores.items() if found is not None}
        if not done.keys() >= set(rates):
            return Search(_rising(made), None, True)
        best = min(done, key=lambda rate: (-done[rate], rate))
        beyond = _beyond(best, rates, done) if len(done) == len(made) else None
        if beyond is None:
            return Search(_rising(made), made[best], len(done) < len(made))
        made[beyond] = trial(beyond)


def _rising(made: dict[float, Trial]) -> list[Trial]:
    return [made[rate] for rate in sorted(made)]


def _beyond(best: float, rates: Sequence[float], done: dict[float, float]) -> float | None:
    """The next rate, where the best one is at an edge and better than its neighbour."""
    lowest, second, *_ = ordered = sorted(done)
    if not math.isfinite(done[best]):
        return None
    if best == ordered[-1]:
        return best * rates[-1] / rates[-2]
    # models that learn nothing at any rate are all level at the lowest
    return best * rates[0] / rates[1] if best == lowest and done[best] > done[second] else None
