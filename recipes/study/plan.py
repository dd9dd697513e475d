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
CANDIDATES = {
    "sphere": (1e-2, 2e-2),
    "one_time": (1e-2, 2e-2),
    "hybonet_sphere": (1e-2, 2e-2),
    "hybonet_logit": (1e-2, 2e-2),
    "hybonet_centroid": (1e-2, 2e-2),
    "lorentz_prenorm": (1e-2, 2e-2),
    "geodesic_logits": (1e-2, 2e-2),
    "geodesic_attention": (1e-2, 2e-2),
    "hypformer_softmax": (5e-3, 1e-2),
}
"""What else was tried, as long, at the two rates that HyboNet, or Hypformer, learns best at."""
ADVANCED = {"one_time": 1e-2, "sphere": 1e-2}
"""Candidates that went on to final trainings at every dropout, and their rate."""
RATES_UPDATES, FINAL_UPDATES = 600, 3000
DROPOUT, DROPOUTS = 0.1, (0.1, 0.2, 0.3)
"""While rates are tried, and those that are tried in final trainings."""
TWINS = ("prenorm", "postnorm")
TUNED = ("hybonet", *TWINS)
"""Models whose final trainings are at every dropout; the others take the better twin's."""
SEEDS = 3
"""Final trainings of HyboNet, the better twin and advanced candidates at their best dropout; one of
all others."""

Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Training:
    """One training: a model's ``.args`` file, and what the file leaves open."""

    stage: str
    model: str
    rate: float
    updates: int
    seed: int = 1
    dropout: float = DROPOUT

    @property
    def name(self) -> str:
        """What its folder, its log and its line of the results are called."""
        dropout = "" if self.dropout == DROPOUT else f"-dropout{_number(self.dropout)}"
        return f"{self.stage}-{self.model}-lr{_number(self.rate)}{dropout}-seed{self.seed}"


def _number(value: float) -> str:
    return f"{value:g}".replace(".", "p")


def trainings(results: Results) -> list[Training]:
    """All that can be named so far: what is tried first decides on what is trained later."""
    rates = [
        Training(stage, model, rate, RATES_UPDATES)
        for stage, models in (("rates", RATES), ("candidates", CANDIDATES))
        for model, tried in models.items()
        for rate in tried
    ]
    twin = better_twin(results)
    first, later = [], []
    for model in (*RATES, *ADVANCED):
        if model in TUNED or model in ADVANCED:
            first += _final(results, model, DROPOUTS)
            best = best_dropout(results, model)
            if best is not None and model in ("hybonet", twin, *ADVANCED):
                later += _final(results, model, [best], range(2, SEEDS + 1))
        elif twin is not None and (dropout := best_dropout(results, twin)) is not None:
            later += _final(results, model, [dropout])
    return [*rates, *first, *sorted(later, key=lambda training: training.seed)]


def _final(
    results: Results, model: str, dropouts: Iterable[float], seeds: Iterable[int] = (1,)
) -> list[Training]:
    """Final trainings at the best rate; none until that is known."""
    rate = ADVANCED.get(model) or best_rate(results, model)
    if rate is None:
        return []
    return [
        Training("final", model, rate, FINAL_UPDATES, seed, dropout)
        for seed in seeds
        for dropout in dropouts
    ]


def best_rate(results: Results, model: str) -> float | None:
    """The rate with the lowest validation perplexity, once all of a model's rates are tried."""
    return _best(results, ("rates", model), "rate", RATES[model])


def best_dropout(results: Results, model: str) -> float | None:
    """The same of dropouts, by final trainings with the first seed."""
    firsts = [line for line in results if line["seed"] == 1]
    return _best(firsts, ("final", model), "dropout", DROPOUTS)


def better_twin(results: Results) -> str | None:
    """The twin with the lowest validation perplexity at its best dropout, once both are tried."""
    if any(best_dropout(results, twin) is None for twin in TWINS):
        return None
    return min(TWINS, key=lambda twin: min(_tried(results, ("final", twin), "dropout").values()))


def _best(
    results: Results, kind: tuple[str, str], key: str, values: Sequence[float]
) -> float | None:
    tried = _tried(results, kind, key)
    return min(tried, key=lambda value: tried[value]) if set(tried) == set(values) else None


def _tried(results: Results, kind: tuple[str, str], key: str) -> dict[float, float]:
    """Validation perplexity by rate or dropout, of a stage and model."""
    return {
        line.get(key, DROPOUT): perplexity_of(line)
        for line in results
        if (line["stage"], line["model"]) == kind
    }


def perplexity_of(line: Mapping[str, Any]) -> float:
    """Of a finished training; infinite where it diverged."""
    found = line["valid_perplexity"]
    return math.inf if found is None else float(found)
