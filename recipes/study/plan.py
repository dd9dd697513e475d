"""The trainings of the study, in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

RATES = {
    "hybonet": (5e-3, 1e-2, 2e-2, 4e-2),
    "euclidean_prenorm": (2.5e-3, 5e-3, 1e-2, 2e-2),
    "euclidean": (1.25e-3, 2.5e-3, 5e-3, 1e-2),
    "hypformer": (2.5e-3, 5e-3, 1e-2, 2e-2),
    "han": (1.25e-3, 2.5e-3, 5e-3, 1e-2),
    "hvt": (1.5e-3, 3e-3, 6e-3, 1.2e-2),
}
"""Rates that each model is tried at: as many, and as far apart, for all."""
CANDIDATES = {
    "hybonet_plus": (5e-3, 1e-2, 2e-2),
    "sphere": (1e-2, 2e-2),
    "lorentz_prenorm": (1e-2,),
}
"""What else was tried, as long, at the twin's best rate, and what went on to final trainings at
others too; results of candidates that led nowhere are of commit c174f7c."""
ADVANCED = {"hybonet_plus": 1e-2, "sphere": 1e-2}
"""Candidates that went on to final trainings as HyboNet's, and their rate."""
PUBLISHED = {"published_euclidean_prenorm": 1e-2, "published_hybonet_plus": 1e-2}
"""Models of the size of a published baseline, at its dropout and each at its best rate here."""
PUBLISHED_STAGES = ("published", "lowercased")
"""Those models with the text of all others, and with the baseline's: lower-cased Moses tokens."""
PUBLISHED_DROPOUT = 0.3
RATES_UPDATES, FINAL_UPDATES, PUBLISHED_UPDATES = 600, 3000, 6000
DROPOUT, DROPOUTS = 0.1, (0.1, 0.2, 0.3)
"""While rates are tried, and those that are tried in final trainings."""
TWINS = ("euclidean_prenorm", "euclidean")
SEEDS = 3
"""Final trainings of HyboNet, the better twin and advanced candidates as they are best; one of all
others."""

Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Training:
    """One training: a model's section of ``models.ini``, and what it leaves open."""

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

    @property
    def joined(self) -> bool:
        """Whether both languages have one dictionary and all embeddings are shared."""
        return self.stage in PUBLISHED_STAGES

    @property
    def lowercased(self) -> bool:
        """Whether the text is lower-cased Moses tokens in subwords of byte-pair encoding."""
        return self.stage == "lowercased"

    @property
    def folder(self) -> str:
        """Of the prepared text and the trainings on it."""
        return "lowercased" if self.lowercased else "joined" if self.joined else "."


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
    of_twin = best_setting(results, twin) if twin else None
    first, later = [], []
    for model in (*RATES, *ADVANCED):
        if model in ("hybonet", twin, *ADVANCED):
            first += _finals(model, final_settings(results, model))
            best = best_setting(results, model)
            if best is not None:
                later += _finals(model, [best], range(2, SEEDS + 1))
        elif of_twin is not None and (rate := best_rate(results, model)) is not None:
            _, dropout = of_twin
            later += _finals(model, [(rate, dropout)])
    published = [
        Training(stage, model, rate, PUBLISHED_UPDATES, dropout=PUBLISHED_DROPOUT)
        for stage in PUBLISHED_STAGES
        for model, rate in PUBLISHED.items()
    ]
    return [*rates, *first, *sorted(later, key=lambda training: training.seed), *published]


def _finals(
    model: str, settings: Iterable[tuple[float, float]], seeds: Iterable[int] = (1,)
) -> list[Training]:
    return [
        Training("final", model, rate, FINAL_UPDATES, seed, dropout)
        for seed in seeds
        for rate, dropout in settings
    ]


def best_rate(results: Results, model: str) -> float | None:
    """The rate with the lowest validation perplexity, once all of a model's rates are tried."""
    found = _tried(results, "rates", model)
    rates = {rate: perplexity for (rate, _), perplexity in found.items()}
    return _lowest(rates, RATES[model])


def final_settings(results: Results, model: str) -> list[tuple[float, float]]:
    """Rates and dropouts of a model's final trainings with the first seed, known so far.

    Its best rate of the short trainings at every dropout, then half that rate, as long trainings
    often ask for a lower one, at the dropout that was best.
    """
    rate = ADVANCED.get(model) or best_rate(results, model)
    if rate is None:
        return []
    settings = [(rate, dropout) for dropout in DROPOUTS]
    best = _lowest(_tried(results, "final", model), settings)
    return settings if best is None else [*settings, (rate / 2, best[1])]


def best_setting(results: Results, model: str) -> tuple[float, float] | None:
    """Rate and dropout with the lowest validation perplexity, once all are tried."""
    settings = final_settings(results, model)
    if len(settings) <= len(DROPOUTS):
        return None
    return _lowest(_tried(results, "final", model), settings)


def better_twin(results: Results) -> str | None:
    """The twin with the lowest validation perplexity after short trainings, once all are tried."""
    best = {}
    for twin in TWINS:
        rate = best_rate(results, twin)
        if rate is None:
            return None
        best[twin] = _tried(results, "rates", twin)[rate, DROPOUT]
    return _lowest(best, TWINS)


_Key = TypeVar("_Key")


def _lowest(tried: Mapping[_Key, float], wanted: Sequence[_Key]) -> _Key | None:
    """The wanted one with the lowest perplexity; None while one is not tried."""
    if not all(one in tried for one in wanted):
        return None
    return min(wanted, key=lambda one: tried[one])


def _tried(results: Results, stage: str, model: str) -> dict[tuple[float, float], float]:
    """Validation perplexity by rate and dropout, of a stage's trainings with the first seed."""
    return {
        (line["rate"], line.get("dropout", DROPOUT)): perplexity_of(line)
        for line in results
        if (line["stage"], line["model"], line["seed"]) == (stage, model, 1)
    }


def perplexity_of(line: Mapping[str, Any]) -> float:
    """Of a finished training; infinite where it diverged."""
    found = line["valid_perplexity"]
    return math.inf if found is None else float(found)
