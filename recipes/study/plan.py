"""The trainings of the study, in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipes.common.results import Results
from recipes.common.settings import in_name

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
    "lorentz_shell": (1e-2,),
    "lorentz_free": (1e-2,),
}
"""What else was tried, as long, at the twin's best rate, and what went on to final trainings at
others too; results of candidates that led nowhere are of commit c174f7c."""
ADVANCED = {"hybonet_plus": 1e-2, "sphere": 1e-2, "lorentz_shell": 1e-2}
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
WIDTH = 64
"""Of the models that rates are tried with."""
WIDTH_RATES = (1e-2, 2e-2, 4e-2, 8e-2)
_COMPARED = ("euclidean_prenorm", "sphere", "hybonet", "hybonet_plus")
_SHELLS = ("lorentz_shell", "lorentz_free")
WIDTHS: dict[str, tuple[int, dict[str, tuple[float, ...]]]] = {
    "d16": (16, {**dict.fromkeys(_COMPARED, WIDTH_RATES), **dict.fromkeys(_SHELLS, (4e-2,))}),
    "d32": (32, dict.fromkeys((*_COMPARED, *_SHELLS), (2e-2,))),
}
"""By stage the width, and the rates that models are tried at: the last two at the best of the twin
and of `sphere`, and at width 32 all between that and the best of 64."""
SEEDS = 3
"""Final trainings of HyboNet, the better twin and advanced candidates as they are best, and all at
small widths; one of all others."""

Setting = tuple[float, float]
"""Rate and dropout."""


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
        dropout = "" if self.dropout == DROPOUT else f"-dropout{in_name(self.dropout)}"
        return f"{self.stage}-{self.model}-lr{in_name(self.rate)}{dropout}-seed{self.seed}"

    @property
    def width(self) -> int | None:
        """Units of its states, where its stage says another number than its model's flags."""
        return WIDTHS[self.stage][0] if self.stage in WIDTHS else None

    @property
    def text(self) -> str:
        """What the text is: empty, or ``joined``, with one dictionary for both languages.

        Or ``lowercased``: that, of lower-cased Moses tokens in subwords of byte-pair encoding.
        """
        return {"published": "joined", "lowercased": "lowercased"}.get(self.stage, "")


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
            first += [_final(model, setting) for setting in final_settings(results, model)]
            if best := best_setting(results, model):
                later += [_final(model, best, seed) for seed in range(2, SEEDS + 1)]
        elif of_twin and (rate := best_rate(results, model)):
            later.append(_final(model, (rate, of_twin[1])))
    published = [
        Training(stage, model, rate, PUBLISHED_UPDATES, dropout=PUBLISHED_DROPOUT)
        for stage in PUBLISHED_STAGES
        for model, rate in PUBLISHED.items()
    ]
    finals = [*first, *sorted(later, key=lambda training: training.seed)]
    return [*rates, *finals, *published, *_widths(results)]


def _widths(results: Results) -> list[Training]:
    """Every rate with the first seed, then the best with the others."""
    trials, others = [], []
    for stage, (_, models) in WIDTHS.items():
        for model in models:
            trials += [Training(stage, model, rate, RATES_UPDATES) for rate in models[model]]
            if best := best_of_width(results, stage, model):
                seeds = range(2, SEEDS + 1)
                others += [Training(stage, model, best, RATES_UPDATES, seed) for seed in seeds]
    return [*trials, *sorted(others, key=lambda training: training.seed)]


def best_of_width(results: Results, stage: str, model: str) -> float | None:
    """The rate with the lowest validation perplexity at a width, once all are tried."""
    rates = WIDTHS[stage][1][model]
    best = _best(results, stage, model, [(rate, DROPOUT) for rate in rates])
    return best[0] if best else None


def of_width(results: Results, stage: str, model: str) -> Results:
    """The trainings of a model at a width and at its best rate there; none before all are tried."""
    asked = (stage, model, best_of_width(results, stage, model))
    return [x for x in results if (x["stage"], x["model"], x.get("rate")) == asked]


def _final(model: str, setting: Setting, seed: int = 1) -> Training:
    rate, dropout = setting
    return Training("final", model, rate, FINAL_UPDATES, seed, dropout)


def best_rate(results: Results, model: str) -> float | None:
    """The rate with the lowest validation perplexity, once all of a model's rates are tried."""
    best = _best(results, "rates", model, _rates(model))
    return best[0] if best else None


def final_settings(results: Results, model: str) -> list[Setting]:
    """Rates and dropouts of a model's final trainings with the first seed, known so far.

    Its best rate of the short trainings at every dropout, then half that rate, as long trainings
    often ask for a lower one, at the dropout that was best.
    """
    rate = ADVANCED.get(model) or best_rate(results, model)
    if rate is None:
        return []
    settings = [(rate, dropout) for dropout in DROPOUTS]
    best = _best(results, "final", model, settings)
    return [*settings, (rate / 2, best[1])] if best else settings


def best_setting(results: Results, model: str) -> Setting | None:
    """Rate and dropout with the lowest validation perplexity, once all are tried."""
    settings = final_settings(results, model)
    return _best(results, "final", model, settings) if len(settings) > len(DROPOUTS) else None


def better_twin(results: Results) -> str | None:
    """The twin with the lowest validation perplexity after short trainings, once all are tried."""
    lowest = {}
    for twin in TWINS:
        if best := _best(results, "rates", twin, _rates(twin)):
            lowest[twin] = _tried(results, "rates", twin)[best]
    return min(TWINS, key=lambda twin: lowest[twin]) if len(lowest) == len(TWINS) else None


def _rates(model: str) -> list[Setting]:
    return [(rate, DROPOUT) for rate in RATES[model]]


def _best(results: Results, stage: str, model: str, settings: Sequence[Setting]) -> Setting | None:
    """The setting with the lowest perplexity; None while one is not tried."""
    tried = _tried(results, stage, model)
    return min(settings, key=lambda one: tried[one]) if tried.keys() >= set(settings) else None


def _tried(results: Results, stage: str, model: str) -> dict[Setting, float]:
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
