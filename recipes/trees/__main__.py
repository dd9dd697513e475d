"""Lowest common ancestors in random trees: does the geometry pay on data that are trees?

A question is two leaves; its answer is the path from the root to their lowest common ancestor. The
grid of widths and models uses one tree; ten other trees test its findings.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hyptrans.support.errors import run_command
from hyptrans.support.tables import markdown
from recipes.common import exact, options, seeds
from recipes.common.exact import MODELS, TWINS, Flags, Results, Training, right, size_flags
from recipes.common.grid import Grid
from recipes.trees.tree import SEED, make_sets, make_tree

HERE = Path(__file__).resolve().parent
CELLS = {
    **{f"d{width}": (width, 2) for width in (4, 8, 16, 32)},
    **{f"d{width}h1": (width, 1) for width in (4, 8)},
    **{"d6": (6, 2), "d10": (10, 2)},
}
"""Width and heads. A time takes one number of a head, which counts at small widths."""
_TIMES_WITHIN = tuple(model for model in MODELS if model != "lorentz_shell")
ONLY = {
    **{"d4h1": _TIMES_WITHIN, "d8h1": _TIMES_WITHIN},
    **{"d6": ("hybonet_plus",), "d10": ("hybonet_plus",)},
}
"""Models by cell. Only models whose heads each lose a coordinate to a time run with one head; at
d6 and d10, heads have as many space coordinates as the twin's at d4 and d8."""
RATES = (3e-3, 1e-2, 3e-2)
UPDATES, SEEDS = 2000, (1, 2, 3, 4, 5)
FOREST, TREES, TREE_SEEDS = "forest", range(1, 11), (1, 2, 3)
"""The stage of the other trees, the seeds that draw them, and the training seeds on each tree."""
FOREST_CELLS = ("d8", "d16", "d32")
FOREST_MODELS = (*TWINS, "sphere", "hybonet_plus", "lorentz_shell")
VALID, TEST = "valid", "test"
_FLAGS: Flags = {
    **{"--share-all-embeddings": None, "--optimizer": "adam", "--adam-betas": "(0.9, 0.999)"},
    **{"--clip-norm": "1", "--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0", "--attention-dropout": "0", "--warmup-updates": "200"},
    **{"--lr-scheduler": "polynomial_decay", "--total-num-update": "{updates}"},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the tables."""
    parser = options.recipe_parser(HERE, __doc__, "--out ~/trees")
    exact.run(HERE, parser.parse_args(argv), trainings, cache(sets), table)


def sets(task: str) -> exact.Sets:
    """Return the questions about the grid's tree (``data``), or about another one (``tree3``)."""
    seed = int(task.removeprefix("tree")) if task.startswith("tree") else SEED
    return make_sets(make_tree(seed), seed)


def trainings(found: Results) -> list[Training]:
    """Return all trainings known so far: the grid, then the other trees at the best rates."""
    cells = itertools.product(FOREST_CELLS, FOREST_MODELS)
    choices = {(cell, model): GRID.choice(found, cell, model) for cell, model in cells}
    others = [
        _training(model, cell, choice.best[0].rate, stage=FOREST, tree=tree, seed=seed)
        for tree in TREES
        for cell in FOREST_CELLS
        for model in FOREST_MODELS
        if not (choice := choices[cell, model]).left
        for seed in TREE_SEEDS
    ]
    return [*GRID.trainings(found), *others]


def _training(
    model: str, cell: str, rate: float, *, stage: str = "path", tree: int = 0, seed: int = SEEDS[0]
) -> Training:
    width, heads = CELLS[cell]
    flags = {**size_flags(width=width, heads=heads), **_FLAGS}
    task, setting = (f"tree{tree}", f"{cell}-tree{tree}") if tree else ("data", cell)
    return Training(stage, model, setting, rate, UPDATES, seed, flags, (VALID, TEST), task)


GRID = Grid("width", tuple(CELLS), RATES, SEEDS, _training, VALID, TEST, ONLY, "level_4")


def table(found: Results) -> str:
    """Write the grid's table and, once all models have results there, the other trees' table."""
    return "\n\n".join(filter(None, (GRID.table(found), forest(found))))


def forest(found: Results) -> str:
    """Write exact match on the other trees (means over seeds); no results: empty text."""
    of_stage = [line for line in found if line.get("stage") == FOREST]
    rows: list[list[object]] = []
    p: dict[tuple[str, str], float] = {}
    for cell in FOREST_CELLS:
        by_tree = {model: _by_tree(of_stage, cell, model) for model in FOREST_MODELS}
        twin = GRID.twin(found, cell)
        for model in FOREST_MODELS:
            shared = sorted(by_tree[model].keys() & by_tree[twin].keys())
            pairs = [(by_tree[model][tree], by_tree[twin][tree]) for tree in shared]
            if model != twin and len(pairs) > 1:
                p[cell, model] = seeds.sign_flips([one - other for one, other in pairs])
    p = seeds.holm(p)
    for cell in FOREST_CELLS:
        for model in FOREST_MODELS:
            if scores := [*_by_tree(of_stage, cell, model).values()]:
                shown = f"{p[cell, model]:.3f}" if (cell, model) in p else ""
                rows.append([cell, model, len(scores), seeds.spread(scores), shown])
    if not rows:
        return ""
    header = ["width", "model", "trees", "exact match", "p"]
    return (
        f"{markdown(header, rows, texts=2)}\n\nTen other trees, at the rates of the table above: "
        "mean ± standard deviation over trees, each the mean of its seeds; p: of the difference "
        "from the twin, by sign flips of the trees' differences, two-sided, Holm's correction over "
        f"the {len(p)} tests of this table."
    )


def _by_tree(found: Results, cell: str, model: str) -> dict[str, float]:
    """Return percent of right answers by tree, for trees whose seeds are all done."""
    several: dict[str, list[float]] = {}
    for line in found:
        if line["model"] == model and line["setting"].startswith(f"{cell}-"):
            several.setdefault(line["task"], []).append(right(line, TEST))
    done = {tree: of for tree, of in several.items() if len(of) == len(TREE_SEEDS)}
    return {tree: statistics.fmean(of) for tree, of in done.items()}


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
