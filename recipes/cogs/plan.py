"""The trainings on COGS, in the order in which they run; README.md says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recipes.common.exact import (
    MODELS,
    TWIN,
    Flags,
    Results,
    Training,
    best,
    rate_trials,
    scores_of,
    size_flags,
)

TEST, GEN, DEV = "test", "gen", "gen_dev"
"""In-distribution test set, generalization set, and the part of it that settings are chosen by."""
PER_KIND = 100
"""Sentences of each kind of generalization in that part."""
UPDATES, FINAL_UPDATES = 3000, 10000
LONGER, LONGER_MODELS = 30000, (TWIN, "hybonet_plus")
"""Updates of two models at their best rates, which tell what final trainings leave out."""
RATES = (1e-3, 2e-3, 4e-3, 8e-3)
"""Rates that each model is tried at; twice the last one too, and so on, where it is the best."""
RATE = 2e-3
"""Where the twin's settings are tried."""
SEEDS, TRIAL_SEEDS, SPACE_SEEDS = (1, 2, 3, 4, 5), (1, 2), (1, 2, 3)
GAIN = 1.0
"""Points that a change has to gain to be tried together with others."""
PLAIN = "plain"
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
"""What the twin is tried with, one by one and then together."""
_FIXED: Flags = {"--no-hypformer-learn-curvature": None}
SPACES: dict[str, Flags] = {"fixed": _FIXED, "flat": {**_FIXED, "--curvature": "0.01"}}
"""What ``hybonet_plus`` is without learned curvatures, and nearly without curvature."""
_PRENORM: Flags = {"--encoder-normalize-before": None, "--decoder-normalize-before": None}
_OF_TWIN: dict[str, Flags] = {
    "sinusoidal": {"--arch": "transformer", **_PRENORM},
    "unscaled": {"--no-scale-embedding": None},
}
"""The twin's flags where it has others: fairseq's sizes have sinusoidal positions, and it alone
multiplies its embeddings."""


def trainings(results: Results) -> list[Training]:
    """All that can be named so far: what is tried first decides on what is trained later."""
    tried = _of_twin([PLAIN, *CHANGES])
    if scores := scores_of(results, tried, DEV):
        of_change = dict(zip([trial.setting for trial in tried], scores, strict=True))
        helpful = [name for name in CHANGES if of_change[name] >= of_change[PLAIN] + GAIN]
        tried += _of_twin(["+".join(helpful)] if len(helpful) > 1 else [])
    setting = best(results, tried, DEV)
    if setting is None:
        return tried
    rates: list[Training] = []
    finals: list[Training] = []
    longer: list[Training] = []
    spaces: list[Training] = []
    for model in MODELS:
        of_model = _rates(results, model, setting.setting)
        rates += of_model
        if chosen := best(results, of_model, DEV):
            finals += [_final(chosen, seed) for seed in SEEDS]
            if model in LONGER_MODELS:
                longer.append(replace(chosen, stage="longer", updates=LONGER))
            if model == "hybonet_plus":
                for space in SPACES:
                    spaces += (of_space := _in_space(of_model, space))
                    if curved := best(results, of_space, DEV):
                        long = replace(curved, updates=FINAL_UPDATES)
                        spaces += [replace(long, seed=seed) for seed in SPACE_SEEDS]
    finals.sort(key=lambda training: training.seed)
    return [*tried, *rates, *finals, *spaces, *longer]


def _of_twin(settings: Sequence[str]) -> list[Training]:
    return [_trial("twin", TWIN, name, RATE, seed) for name in settings for seed in TRIAL_SEEDS]


def _rates(results: Results, model: str, setting: str) -> list[Training]:
    def trial(rate: float) -> Training:
        return _trial("rates", model, setting, rate, SEEDS[0])

    return rate_trials(results, trial, RATES, DEV)


def _trial(stage: str, model: str, setting: str, rate: float, seed: int) -> Training:
    flags = dict(_PLAIN)
    for change in [] if setting == PLAIN else setting.split("+"):
        flags |= _OF_TWIN.get(change, CHANGES[change]) if model == TWIN else CHANGES[change]
        if change == "two_tables":
            del flags[_SHARE_ALL]
    return Training(stage, model, setting, rate, UPDATES, seed, flags, (DEV,))


def _in_space(trials: Sequence[Training], space: str) -> list[Training]:
    """The trials of rates, with the curvature set."""
    return [
        replace(
            trial,
            stage="curvature",
            setting=f"{trial.setting}+{space}",
            flags={**trial.flags, **SPACES[space]},
        )
        for trial in trials[: len(RATES) - 1]
    ]


def _final(chosen: Training, seed: int) -> Training:
    answers = (DEV, GEN, TEST)
    return replace(chosen, stage="final", updates=FINAL_UPDATES, seed=seed, answers=answers)
