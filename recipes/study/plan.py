"""List the study's trainings in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recipes.common.results import Results
from recipes.common.search import Search, search
from recipes.common.settings import in_name

TWINS = ("euclidean_prenorm", "euclidean_postnorm", "euclidean")
WIDTHS = {"d16": 16, "d32": 32}
"""Width of the states by stage; elsewhere the models' flags set 64."""
WIDTH = 64
_WIDE = (1e-2, 2e-2, 4e-2, 8e-2)
_COMPARED = (*TWINS[:2], "sphere", "hybonet", "hybonet_plus")
RATES: dict[str, dict[str, tuple[float, ...]]] = {
    "rates": {
        "hybonet": (5e-3, 1e-2, 2e-2, 4e-2),
        "euclidean_prenorm": (2.5e-3, 5e-3, 1e-2, 2e-2),
        "euclidean_postnorm": (2.5e-3, 5e-3, 1e-2, 2e-2),
        "euclidean": (1.25e-3, 2.5e-3, 5e-3, 1e-2),
        "hypformer": (2.5e-3, 5e-3, 1e-2, 2e-2),
        "han": (1.25e-3, 2.5e-3, 5e-3, 1e-2),
        "hvt": (1.5e-3, 3e-3, 6e-3, 1.2e-2),
    },
    "candidates": {
        "hybonet_plus": (5e-3, 1e-2, 2e-2),
        "sphere": (1e-2, 2e-2),
        "lorentz_shell": (1e-2,),
    },
    "d16": {**dict.fromkeys(_COMPARED, _WIDE), "lorentz_shell": (4e-2,)},
    "d32": dict.fromkeys((*_COMPARED, "lorentz_shell"), (2e-2,)),
}
"""Rates to try first, by stage of short trainings and model. A single rate is not searched but
taken from other results: the pre-norm twin's best, at width 16 also that of `sphere`, and at width
32 one between the best rates of widths 16 and 64 for all models."""
TUNED = ("hybonet", *TWINS[:2], "hybonet_plus", "sphere", "lorentz_shell")
"""Models whose final trainings try every dropout and have several seeds."""
UNTUNED, UNTUNED_DROPOUT = ("euclidean", "hypformer", "han", "hvt"), 0.2
"""The other models, with one seed and the pre-norm twin's best dropout."""
PUBLISHED = ("published_euclidean_prenorm", "published_hybonet_plus")
"""Models at the size and dropout of a published baseline, and at their best rate here."""
PUBLISHED_RATE, PUBLISHED_DROPOUT, PUBLISHED_UPDATES = 1e-2, 0.3, 6000
PUBLISHED_TEXTS = {"published": "joined", "lowercased": "lowercased"}
"""The text by stage: ours with one dictionary, or the baseline's lower-cased Moses tokens."""
AVERAGED = "averaged"
"""Stage that translates with the average of the last checkpoints, at dropout 0.1."""
AVERAGED_MODELS = (*TWINS[:2], "hybonet_plus")
SHORT_UPDATES, FINAL_UPDATES = 600, 3000
DROPOUT, DROPOUTS = 0.1, (0.1, 0.2, 0.3)
"""The dropout while searching rates, and the dropouts that final trainings try."""
SEEDS = 5
"""Seeds of tuned models' final trainings, and of all models at small widths."""

Setting = tuple[float, float]
"""Rate and dropout."""


@dataclass(frozen=True)
class Training:
    """One training: a model (a section of ``models.ini``) and the settings it leaves open."""

    stage: str
    model: str
    rate: float
    updates: int
    seed: int = 1
    dropout: float = DROPOUT

    @property
    def name(self) -> str:
        """Return the name of the training's folder, log and results line."""
        dropout = "" if self.dropout == DROPOUT else f"-dropout{in_name(self.dropout)}"
        return f"{self.stage}-{self.model}-lr{in_name(self.rate)}{dropout}-seed{self.seed}"

    @property
    def text(self) -> str:
        """Return the text's kind: empty, ``joined`` (one dictionary) or ``lowercased`` (Moses)."""
        return PUBLISHED_TEXTS.get(self.stage, "")


def trainings(results: Results) -> list[Training]:
    """Return all trainings known so far; earlier results determine later trainings."""
    tried = {
        (stage, model): rate_search(results, stage, model)
        for stage, models in RATES.items()
        for model in models
    }
    first, later, averaged, widths = [], [], [], []
    for model in TUNED:
        settings = final_settings(results, model)
        first += [_final(model, setting) for setting in settings]
        if best := best_setting(results, model):
            later += [_final(model, best, seed) for seed in range(2, SEEDS + 1)]
        if model in AVERAGED_MODELS and settings:
            of_model = (AVERAGED, model, settings[0][0], FINAL_UPDATES)
            averaged += [Training(*of_model, seed) for seed in range(1, SEEDS + 1)]
    for model in UNTUNED:
        trial = tried["rates", model].best
        if trial and not tried["rates", model].is_open:
            later.append(_final(model, (trial.rate, UNTUNED_DROPOUT)))
    for (stage, model), found in tried.items():
        if stage in WIDTHS and found.best and not found.is_open:
            of_model = (stage, model, found.best.rate, SHORT_UPDATES)
            widths += [Training(*of_model, seed) for seed in range(2, SEEDS + 1)]
    published = [
        Training(stage, model, PUBLISHED_RATE, PUBLISHED_UPDATES, dropout=PUBLISHED_DROPOUT)
        for stage in PUBLISHED_TEXTS
        for model in PUBLISHED
    ]
    of_width = [one for (stage, _), x in tried.items() if stage in WIDTHS for one in x.trials]
    wide = [one for (stage, _), x in tried.items() if stage not in WIDTHS for one in x.trials]
    finals = [*first, *_by_seed(later), *_by_seed(averaged)]
    return [*wide, *finals, *published, *of_width, *_by_seed(widths)]


def _by_seed(several: Iterable[Training]) -> list[Training]:
    return sorted(several, key=lambda training: training.seed)


def rate_search(results: Results, stage: str, model: str) -> Search[Training]:
    """Return the search for a model's rate in a stage of short trainings."""
    rates, tried = RATES[stage][model], _tried(results, stage, model)

    def trial(rate: float) -> Training:
        return Training(stage, model, rate, SHORT_UPDATES)

    def score(training: Training) -> float | None:
        perplexity = tried.get((training.rate, DROPOUT))
        return None if perplexity is None else -perplexity

    if len(rates) > 1:
        return search(trial, rates, score)
    only = trial(rates[0])
    done = score(only) is not None
    return Search([only], only if done else None, not done)


def is_open(results: Results, stage: str, model: str) -> bool:
    """Return whether a rate other than the stage's current one may turn out to be the best.

    That is so while a search is running or if only one rate was tried. Final trainings of a tuned
    model have their own search.
    """
    if stage == "final" and model in TUNED and best_setting(results, model) is None:
        return True
    stages = [stage] if stage in WIDTHS else ["rates", "candidates"]
    searched = [one for one in stages if len(RATES[one].get(model, ())) > 1]
    return not searched or any(rate_search(results, one, model).is_open for one in searched)


def of_width(results: Results, stage: str, model: str) -> Results:
    """Return a model's trainings at a width, at its best rate there."""
    best = rate_search(results, stage, model).best
    wanted = (stage, model, best.rate if best else None)
    return [x for x in results if (x["stage"], x["model"], x.get("rate")) == wanted]


def _final(model: str, setting: Setting, seed: int = 1) -> Training:
    rate, dropout = setting
    return Training("final", model, rate, FINAL_UPDATES, seed, dropout)


def final_settings(results: Results, model: str) -> list[Setting]:
    """Return the rates and dropouts known so far of a model's first-seed final trainings.

    First come its best rate in short trainings at every dropout, then half that rate at the best
    dropout, because long trainings often need a lower one, and so on while the lowest is the best.
    """
    stage = "rates" if model in RATES["rates"] else "candidates"
    found = rate_search(results, stage, model)
    if found.best is None or found.is_open:
        return []
    settings = [(found.best.rate, dropout) for dropout in DROPOUTS]
    while (chosen := _best(results, model, settings)) and chosen[0] == settings[-1][0]:
        settings.append((chosen[0] / 2, chosen[1]))
    return settings


def best_setting(results: Results, model: str) -> Setting | None:
    """Return rate and dropout of the lowest validation perplexity, or None until all are tried."""
    settings = final_settings(results, model)
    return _best(results, model, settings) if settings else None


def _best(results: Results, model: str, settings: list[Setting]) -> Setting | None:
    tried = _tried(results, "final", model)
    return min(settings, key=lambda one: tried[one]) if tried.keys() >= set(settings) else None


def _tried(results: Results, stage: str, model: str) -> dict[Setting, float]:
    """Return validation perplexity by rate and dropout for a stage's first-seed trainings."""
    return {
        (line["rate"], line.get("dropout", DROPOUT)): perplexity_of(line)
        for line in results
        if (line["stage"], line["model"], line["seed"]) == (stage, model, 1)
    }


def perplexity_of(line: Mapping[str, Any]) -> float:
    """Return a training's validation perplexity, or infinity if it diverged."""
    found = line["valid_perplexity"]
    return math.inf if found is None else float(found)
