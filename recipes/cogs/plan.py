"""List the trainings on COGS in the order in which they run; README.md gives the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from recipes.common.exact import MODELS, TWINS, Flags, Results, Training, score_in, size_flags
from recipes.common.search import Search, search

TEST, GEN, DEV = "test", "gen", "gen_dev"
"""In-distribution test set, generalization set, and the part of the latter for choosing settings.
"""
PER_KIND = 100
"""Sentences of each kind of generalization in that part."""
UPDATES, FINAL_UPDATES, LONG_UPDATES = 3000, 10000, 30000
RATES = (1e-3, 2e-3, 4e-3, 8e-3)
"""Rates to try for each model; the search goes on while the best rate is the lowest or highest."""
RATE = 2e-3
"""Rate at which the twin's settings are compared."""
FINALS: dict[str, Sequence[int]] = {
    **dict.fromkeys(MODELS, range(1, 6)),
    **dict.fromkeys(("euclidean_postnorm", "hybonet_plus"), range(1, 16)),
}
"""Seeds of final trainings."""
LONG: dict[str, Sequence[int]] = dict.fromkeys((*TWINS, "hybonet_plus"), range(1, 6))
"""Seeds by model of longer trainings, which show what the final ones miss."""
TRIAL_SEEDS, SPACE_SEEDS = (1, 2), (1, 2, 3)
GAIN = 1.0
"""A change that gains at least this many points is also tried together with the others."""
PLAIN, TWIN = "plain", TWINS[0]
_SHARE_ALL = "--share-all-embeddings"
_PLAIN: Flags = {
    **size_flags(width=64, heads=4),
    **{"--optimizer": "adam", "--adam-betas": "(0.9, 0.999)", "--clip-norm": "1"},
    **{"--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0.1", "--attention-dropout": "0", _SHARE_ALL: None},
    **{"--lr-scheduler": "inverse_sqrt", "--warmup-updates": "300"},
}
CHANGES: dict[str, Flags] = {
    "short_memory": {"--adam-betas": "(0.9, 0.98)"},
    "no_dropout": {"--dropout": "0"},
    "small_batches": {"--batch-size": "64"},
    "decay": {"--lr-scheduler": "polynomial_decay", "--total-num-update": "{updates}"},
    "sinusoidal": {"--no-encoder-learned-pos": None, "--no-decoder-learned-pos": None},
    "two_tables": {"--share-decoder-input-output-embed": None},
    "unscaled": {},
}
"""Changes to try with the twin: first one by one, then the helpful ones together."""
_OWN: dict[tuple[str, str], Flags] = {
    (TWIN, "sinusoidal"): {
        "--arch": "transformer",
        **{"--encoder-normalize-before": None, "--decoder-normalize-before": None},
    },
    ("euclidean_postnorm", "sinusoidal"): {"--arch": "transformer", "--layernorm-embedding": None},
    **{(model, "unscaled"): {"--no-scale-embedding": None} for model in TWINS},
}
"""Flags that replace a change's flags for the twins: only twins multiply their embeddings, and the
recorded trainings use fairseq's own architecture names, which have sinusoidal positions."""
_FIXED: Flags = {"--no-hypformer-learn-curvature": None}
SPACES: dict[str, Flags] = {"fixed": _FIXED, "flat": {**_FIXED, "--curvature": "0.01"}}
"""Flags of ``hybonet_plus`` with fixed curvatures, and with almost no curvature."""


def trainings(results: Results) -> list[Training]:
    """Return all trainings known so far; earlier results determine later trainings."""
    tried, setting = _settings(results)
    if setting is None:
        return tried
    searches = {model: rates(results, model, setting) for model in MODELS}
    finals = _seeded(searches, "final", FINAL_UPDATES, FINALS)
    longer = _seeded(searches, "long", LONG_UPDATES, LONG)
    begun = searches["hybonet_plus"].best is not None
    spaces = [one for space in SPACES if begun for one in _in_space(results, setting, space)]
    trials = [trial for found in searches.values() for trial in found.trials]
    return [*tried, *trials, *finals, *longer, *spaces]


def _settings(results: Results) -> tuple[list[Training], str | None]:
    """Return the twin's trainings that decide the setting, and, once all are done, the best one."""
    tried = _of_twin([PLAIN, *CHANGES])
    means = _means(results, tried)
    if len(means) == 1 + len(CHANGES):
        helpful = [name for name in CHANGES if means[name] >= means[PLAIN] + GAIN]
        tried += _of_twin(["+".join(helpful)] if len(helpful) > 1 else [])
        means = _means(results, tried)
    all_done = len(means) == len(tried) / len(TRIAL_SEEDS)
    return tried, max(means, key=lambda name: means[name]) if all_done else None


def best_setting(results: Results) -> str | None:
    """Return the twin's best setting, or None until all are tried."""
    return _settings(results)[1]


def finals(results: Results) -> Results:
    """Return the final trainings at the best setting and the best rates so far."""
    setting = best_setting(results)
    best = {model: rates(results, model, setting).best for model in MODELS} if setting else {}
    rate = {model: one.rate for model, one in best.items() if one}
    return [
        line
        for line in results
        if line["stage"] == "final"
        and (setting, rate.get(line["model"])) == (line["setting"], line["rate"])
    ]


def rates(results: Results, model: str, setting: str) -> Search[Training]:
    """Return the search for a model's rate."""
    trial = partial(_trial, "rates", model, setting, seed=1)
    return search(trial, RATES, score_in(results, DEV))


def _seeded(
    searches: Mapping[str, Search[Training]],
    stage: str,
    updates: int,
    seeds: Mapping[str, Sequence[int]],
) -> list[Training]:
    """Return trainings at the best rates found, sorted by seed; open searches give none."""
    found = [
        replace(best, stage=stage, updates=updates, seed=seed, answers=(DEV, GEN, TEST))
        for model, several in seeds.items()
        if (best := searches[model].best) and not searches[model].is_open
        for seed in several
    ]
    return sorted(found, key=lambda training: training.seed)


def _of_twin(settings: Sequence[str]) -> list[Training]:
    return [_trial("twin", TWIN, one, RATE, seed=seed) for one in settings for seed in TRIAL_SEEDS]


def _means(results: Results, trials: Sequence[Training]) -> dict[str, float]:
    """Return the mean score over seeds of each setting whose seeds are all done."""
    score = score_in(results, DEV)
    means = {}
    for setting in dict.fromkeys(trial.setting for trial in trials):
        scores = [score(trial) for trial in trials if trial.setting == setting]
        done = [one for one in scores if one is not None]
        if len(done) == len(scores):
            means[setting] = fmean(done)
    return means


def _trial(stage: str, model: str, setting: str, rate: float, *, seed: int) -> Training:
    flags = dict(_PLAIN)
    for change in [] if setting == PLAIN else setting.split("+"):
        flags |= _OWN.get((model, change), CHANGES[change])
        if change == "two_tables":
            del flags[_SHARE_ALL]
    return Training(stage, model, setting, rate, UPDATES, seed, flags, (DEV,))


def space_rates(results: Results, setting: str, space: str) -> Search[Training]:
    """Return the search for the rate of ``hybonet_plus`` with the curvature of ``space``."""

    def trial(rate: float) -> Training:
        learned = _trial("curvature", "hybonet_plus", setting, rate, seed=1)
        flags = {**learned.flags, **SPACES[space]}
        return replace(learned, setting=f"{setting}+{space}", flags=flags)

    return search(trial, RATES[:-1], score_in(results, DEV))


def _in_space(results: Results, setting: str, space: str) -> list[Training]:
    """Return short trainings with the curvature of ``space`` and long ones at their best rate."""
    found = space_rates(results, setting, space)
    if found.best is None or found.is_open:
        return [*found.trials]
    long = [replace(found.best, updates=FINAL_UPDATES, seed=seed) for seed in SPACE_SEEDS]
    return [*found.trials, *long]
