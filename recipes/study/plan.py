"""List the study's trainings in the order in which they run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    searches = [
        rate_search(results, stage, model) for stage, models in RATES.items() for model in models
    ]
    trials = [one for found in searches for one in found.trials]
    first = {model: finals(results, model) for model in TUNED}
    best = [one for model in TUNED if (one := best_final(results, model))]
    begun = [first[model][0] for model in AVERAGED_MODELS if first[model]]
    averaged = [replace(one, stage=AVERAGED) for one in begun]
    untuned = [
        replace(_final(one), dropout=UNTUNED_DROPOUT)
        for model in UNTUNED
        if (one := rate_search(results, "rates", model).chosen)
    ]
    published = [
        Training(stage, model, PUBLISHED_RATE, PUBLISHED_UPDATES, dropout=PUBLISHED_DROPOUT)
        for stage in PUBLISHED_TEXTS
        for model in PUBLISHED
    ]
    of_width = [one for found in searches if (one := found.chosen) and one.stage in WIDTHS]
    return [
        *(one for one in trials if one.stage not in WIDTHS),
        *(one for several in first.values() for one in several),
        *untuned,
        *_seeded(best, 2),
        *_seeded(averaged, 1),
        *published,
        *(one for one in trials if one.stage in WIDTHS),
        *_seeded(of_width, 2),
    ]


def _seeded(trainings: Sequence[Training], first: int) -> list[Training]:
    """Return trainings with every seed from ``first`` on, seed by seed."""
    return [replace(one, seed=seed) for seed in range(first, SEEDS + 1) for one in trainings]


def _final(training: Training) -> Training:
    return replace(training, stage="final", updates=FINAL_UPDATES)


def rate_search(results: Results, stage: str, model: str) -> Search[Training]:
    """Return the search for a model's rate in a stage of short trainings."""
    scores = _scores(results)
    return search(
        lambda rate: Training(stage, model, rate, SHORT_UPDATES),
        RATES[stage][model],
        lambda training: scores.get(training.name),
    )


def is_open(results: Results, stage: str, model: str) -> bool:
    """Return whether a rate other than the stage's current one may turn out to be the best.

    That is so while a search is running or if only one rate was tried. Final trainings of a tuned
    model have their own search.
    """
    if stage == "final" and model in TUNED and best_final(results, model) is None:
        return True
    stages = [stage] if stage in WIDTHS else ["rates", "candidates"]
    searched = [one for one in stages if len(RATES[one].get(model, ())) > 1]
    return not searched or any(rate_search(results, one, model).is_open for one in searched)


def finals(results: Results, model: str) -> list[Training]:
    """Return the first-seed final trainings known so far of a tuned model.

    First come its best rate in short trainings at every dropout, then half that rate at the best
    dropout, because long trainings often need a lower one, and so on while the lowest is the best.
    """
    stage = "rates" if model in RATES["rates"] else "candidates"
    best = rate_search(results, stage, model).chosen
    if best is None:
        return []
    found = [replace(_final(best), dropout=dropout) for dropout in DROPOUTS]
    while (best := _best(results, found)) and best.rate == found[-1].rate:
        found.append(replace(best, rate=best.rate / 2))
    return found


def best_final(results: Results, model: str) -> Training | None:
    """Return the final training of the lowest validation perplexity, None until all are tried."""
    return _best(results, finals(results, model))


def _best(results: Results, trainings: Sequence[Training]) -> Training | None:
    scores = _scores(results)
    if any(one.name not in scores for one in trainings):
        return None
    return max(trainings, key=lambda one: scores[one.name], default=None)


def _scores(results: Results) -> dict[str, float]:
    """Return the negative validation perplexity of each training by name."""
    return {line["name"]: -perplexity_of(line) for line in results if "valid_perplexity" in line}


def perplexity_of(line: Mapping[str, Any]) -> float:
    """Return a training's validation perplexity, or infinity if it diverged."""
    found = line["valid_perplexity"]
    return math.inf if found is None else float(found)
