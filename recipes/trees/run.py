"""Lowest common ancestors in a random tree: where trees certainly are, does the geometry pay?

A question is two leaves, its answer the path from the root to their lowest common ancestor.
Exact match by width of the states. Trainings run one after the other, and the same command goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hyptrans.support.errors import run_command
from hyptrans.support.tables import markdown
from recipes.common import exact, results
from recipes.common.exact import MODELS, Flags, Results, Training, best, size_flags, spread
from recipes.trees.tree import make_sets, make_tree

HERE = Path(__file__).resolve().parent
WIDTHS, HEADS = (4, 8, 16, 32), 2
RATES, RATE_STEP = (3e-3, 1e-2, 3e-2), 3
"""Rates that each model is tried at, at each width; and a step more where the last is the best."""
UPDATES, SEEDS = 2000, (1, 2, 3, 4, 5)
VALID, TEST = "valid", "test"
_FLAGS: Flags = {
    **{"--share-all-embeddings": None, "--optimizer": "adam", "--adam-betas": "(0.9, 0.98)"},
    **{"--clip-norm": "1", "--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0", "--attention-dropout": "0", "--warmup-updates": "200"},
    **{"--lr-scheduler": "polynomial_decay", "--total-num-update": "{updates}"},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is not done yet, and write the table."""
    parser = exact.make_parser(HERE, __doc__)
    parser.epilog = "example: python -m recipes.trees --out ~/trees"
    sets = cache(lambda task: make_sets(make_tree()))
    exact.run(HERE, parser.parse_args(argv), trainings, sets, table)


def trainings(lines: Results) -> list[Training]:
    """All that can be named so far: the first seed at each rate, then the others at the best."""
    tried: list[Training] = []
    others: list[Training] = []
    for width in reversed(WIDTHS):
        for model in MODELS:
            rates = _rates(lines, model, width)
            tried += rates
            if chosen := best(lines, rates, VALID):
                others += [replace(chosen, seed=seed) for seed in SEEDS[1:]]
    return [*tried, *sorted(others, key=lambda training: training.seed)]


def _rates(lines: Results, model: str, width: int) -> list[Training]:
    trials = [_training(model, width, rate) for rate in RATES]
    while best(lines, trials, VALID) is trials[-1]:
        trials.append(_training(model, width, RATE_STEP * trials[-1].rate))
    return trials


def _training(model: str, width: int, rate: float) -> Training:
    flags = {**size_flags(width=width, heads=HEADS), **_FLAGS}
    return Training("path", model, f"d{width}", rate, UPDATES, SEEDS[0], flags, (VALID, TEST))


def table(lines: Results) -> str:
    """Exact match on the test set by width and model, at each model's best rate."""
    rows = []
    for width in WIDTHS:
        chosen = [best(lines, _rates(lines, model, width), VALID) for model in MODELS]
        settings = {(t.model, t.setting, t.rate) for t in chosen if t is not None}
        finals = [x for x in lines if (x["model"], x["setting"], x["rate"]) in settings]
        found = exact.by_model(finals, _right)
        rate = {line["model"]: f"{line['rate']:g}" for line in finals}
        p = exact.against_twin(found)
        for model, scores in found.items():
            shown = f"{p[model]:.3f}" if model in p else ""
            rows.append([width, model, rate[model], len(scores), spread(scores), shown])
    if not rows:
        return results.NOT_MEASURED
    return (
        f"{markdown(['d', 'model', 'rate', 'seeds', 'exact match', 'p'], rows)}\n\nPercent of "
        f"exact matches on the test set after {UPDATES:,} updates, mean ± standard deviation over "
        "seeds, at the rate that is best on the validation set; p: of the difference from the twin "
        "at that width, by permutation of seeds, two-sided, Holm's correction."
    )


def _right(line: Mapping[str, Any]) -> float:
    return float(line["exact"][TEST]["all"]) if line["exact"] else 0.0


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(main, stopped=exact.STOPPED)


if __name__ == "__main__":
    sys.exit(program())
