"""The trainings of the study, in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RATES = {
    "hybonet": (5e-3, 1e-2, 2e-2, 4e-2),
    "prenorm": (2.5e-3, 5e-3, 1e-2, 2e-2),
    "postnorm": (1.25e-3, 2.5e-3, 5e-3, 1e-2),
    "hybonet_space": (5e-3, 1e-2, 2e-2, 4e-2),
    "hypformer": (2.5e-3, 5e-3, 1e-2, 2e-2),
    "han": (1.25e-3, 2.5e-3, 5e-3, 1e-2),
    "hvt": (1.5e-3, 3e-3, 6e-3, 1.2e-2),
}
"""Rates that each model is tried at: as many, and as far apart, for all."""
RATES_UPDATES, FINAL_UPDATES = 600, 3000
TWINS = ("prenorm", "postnorm")
SEEDS = 3
"""Final trainings of HyboNet and of the better twin; one of all others."""


@dataclass(frozen=True)
class Training:
    """One training: a model's ``.args`` file, and what the file leaves open."""

    stage: str
    model: str
    rate: float
    updates: int
    seed: int = 1

    @property
    def name(self) -> str:
        """What its folder, its log and its line of the results are called."""
        rate = f"{self.rate:g}".replace(".", "p")
        return f"{self.stage}-{self.model}-lr{rate}-seed{self.seed}"


def trainings(results: Sequence[Mapping[str, Any]]) -> list[Training]:
    """All that can be named so far: final trainings take the best rate of their model."""
    rates = [
        Training("rates", model, rate, RATES_UPDATES)
        for model, tried in RATES.items()
        for rate in tried
    ]
    repeated = {"hybonet", better_twin(results)}
    finals = []
    for model in RATES:
        rate = best_rate(results, model)
        if rate is not None:
            seeds = range(1, 1 + (SEEDS if model in repeated else 1))
            finals += [Training("final", model, rate, FINAL_UPDATES, seed) for seed in seeds]
    return [*rates, *sorted(finals, key=lambda training: training.seed)]


def best_rate(results: Iterable[Mapping[str, Any]], model: str) -> float | None:
    """The rate with the lowest validation perplexity, once all of a model's rates are tried."""
    tried = _tried(results, model)
    if set(tried) != set(RATES[model]):
        return None
    return min(tried, key=lambda rate: tried[rate])


def better_twin(results: Sequence[Mapping[str, Any]]) -> str | None:
    """The twin with the lowest validation perplexity at its best rate, once both are tried."""
    tried = {twin: _tried(results, twin) for twin in TWINS}
    if any(set(tried[twin]) != set(RATES[twin]) for twin in TWINS):
        return None
    return min(TWINS, key=lambda twin: min(tried[twin].values()))


def _tried(results: Iterable[Mapping[str, Any]], model: str) -> dict[float, float]:
    """Validation perplexity by rate."""
    return {
        line["rate"]: perplexity_of(line)
        for line in results
        if (line["stage"], line["model"]) == ("rates", model)
    }


def perplexity_of(line: Mapping[str, Any]) -> float:
    """Of a finished training; infinite where it diverged."""
    found = line["valid_perplexity"]
    return math.inf if found is None else float(found)
