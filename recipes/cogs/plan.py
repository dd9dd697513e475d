"""List the trainings on COGS in the order in which they run; README.md gives the reasons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from recipes.common.exact import MODELS, TEST, TWINS, Flags, Training, score_in, size_flags
from recipes.common.results import Results, with_values
from recipes.common.search import Search, search

GEN, DEV = "gen", "gen_dev"
"""The generalization set, and its part that chooses rates; ``TEST`` is in-distribution."""
PER_KIND = 100
"""Sentences of each kind of generalization in that part."""
UPDATES, FINAL_UPDATES, LONG_UPDATES = 3000, 10000, 30000
RATES = (1e-3, 2e-3, 4e-3, 8e-3)
"""Rates to try for each model; the search continues while the best rate is the lowest or
highest."""
FINALS: dict[str, Sequence[int]] = {
    **dict.fromkeys(MODELS, range(1, 6)),
    **dict.fromkeys(("euclidean_postnorm", "hybonet_plus"), range(1, 16)),
}
"""Seeds of final trainings."""
LONG: dict[str, Sequence[int]] = dict.fromkeys((*TWINS, "hybonet_plus"), range(1, 6))
"""Seeds by model of longer trainings, which show what the final ones miss."""
SPACE_SEEDS = (1, 2, 3)
SETTING = "sinusoidal"
"""The setting of all models: the best one for a twin in the recorded trials of stage ``twin``."""
FLAGS: Flags = {
    **size_flags(width=64, heads=4),
    **{"--optimizer": "adam", "--adam-betas": "(0.9, 0.999)", "--clip-norm": "1"},
    **{"--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0.1", "--attention-dropout": "0", "--share-all-embeddings": None},
    **{"--lr-scheduler": "inverse_sqrt", "--warmup-updates": "300"},
}
SINUSOIDAL: Flags = {"--no-encoder-learned-pos": None, "--no-decoder-learned-pos": None}
_OF_TWINS: dict[str, Flags] = {
    "euclidean_prenorm": {
        "--arch": "transformer",
        **{"--encoder-normalize-before": None, "--decoder-normalize-before": None},
    },
    "euclidean_postnorm": {"--arch": "transformer", "--layernorm-embedding": None},
}
"""Flags instead of ``SINUSOIDAL``: the recorded trainings of the twins use fairseq's own
architecture, which has sinusoidal positions."""
_FIXED: Flags = {"--no-hypformer-learn-curvature": None}
SPACES: dict[str, Flags] = {"fixed": _FIXED, "flat": {**_FIXED, "--curvature": "0.01"}}
"""Flags of ``hybonet_plus`` with fixed curvatures, and with almost no curvature."""


def trainings(results: Results) -> list[Training]:
    """Return all trainings known so far; earlier results determine later trainings."""
    searches = {model: rates(results, model) for model in MODELS}
    trials = [trial for found in searches.values() for trial in found.trials]
    finals = seeded(searches, "final", FINAL_UPDATES, FINALS)
    longer = seeded(searches, "long", LONG_UPDATES, LONG)
    begun = SPACES if searches["hybonet_plus"].best else ()
    spaces = [one for space in begun for one in _in_space(results, space)]
    return [*trials, *finals, *longer, *spaces]


def finals(results: Results) -> Results:
    """Return the final trainings at the best rates so far."""
    return finals_of(results, (rates(results, model) for model in MODELS))


def finals_of(results: Results, searches: Iterable[Search[Training]]) -> Results:
    """Return the final trainings at the best rates of searches."""
    best = [found.best for found in searches if found.best]
    values = [{"setting": one.setting, "model": one.model, "rate": one.rate} for one in best]
    return [line for one in values for line in with_values(results, stage="final", **one)]


def rates(results: Results, model: str, space: str = "") -> Search[Training]:
    """Return the search for a model's rate, with learned curvatures or with those of ``space``."""
    flags = {**FLAGS, **_OF_TWINS.get(model, SINUSOIDAL), **SPACES.get(space, {})}
    stage, setting = ("curvature", f"{SETTING}+{space}") if space else ("rates", SETTING)
    return search(
        lambda rate: Training(stage, model, setting, rate, UPDATES, 1, flags, (DEV,)),
        RATES[:-1] if space else RATES,
        score_in(results, DEV),
    )


def seeded(
    searches: Mapping[str, Search[Training]],
    stage: str,
    updates: int,
    seeds: Mapping[str, Sequence[int]],
) -> list[Training]:
    """Return trainings at the best rates found, sorted by seed; open searches give none."""
    found = [
        replace(best, stage=stage, updates=updates, seed=seed, answers=(DEV, GEN, TEST))
        for model, several in seeds.items()
        if (best := searches[model].chosen)
        for seed in several
    ]
    return sorted(found, key=lambda training: training.seed)


def _in_space(results: Results, space: str) -> list[Training]:
    """Return short trainings with the curvature of ``space`` and long ones at their best rate."""
    found = rates(results, "hybonet_plus", space)
    if not (best := found.chosen):
        return [*found.trials]
    long = [replace(best, updates=FINAL_UPDATES, seed=seed) for seed in SPACE_SEEDS]
    return [*found.trials, *long]
