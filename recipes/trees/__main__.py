"""Lowest common ancestors in random trees: does the geometry pay on data that are trees?

A question is two leaves; its answer is the path from the root to their lowest common ancestor. The
grid of widths and models uses one tree; eleven other trees test its findings.
"""

import itertools
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hyptrans.support.errors import run_command
from recipes.common import exact, options, seeds
from recipes.common.exact import MODELS, TEST, TWINS, VALID, Flags, Training, right
from recipes.common.grid import Grid
from recipes.common.results import Results, markdown, with_values

HERE = Path(__file__).resolve().parent
LEVELS, CHILDREN = 6, (3, 5)
"""Number of levels; fewest and most children of an inner node."""
SIZES = {"train": 20000, "valid": 1000, "test": 2000}
"""Number of questions in each set."""
SEED = 383
"""Seed of a tree with 1,590 nodes."""
CELLS = {
    **{f"d{width}": (width, 2) for width in (4, 8, 16, 32)},
    **{f"d{width}h1": (width, 1) for width in (4, 8)},
    **{"d6": (6, 2), "d10": (10, 2)},
}
"""Width and heads. A time takes one coordinate of each head, which matters at small widths."""
_TIMES_WITHIN = tuple(model for model in MODELS if model != "lorentz_shell")
ONLY = {
    **{"d4h1": _TIMES_WITHIN, "d8h1": _TIMES_WITHIN},
    **{"d6": ("hybonet_plus",), "d10": ("hybonet_plus",)},
}
"""Models by cell. Only models whose heads each lose a coordinate to a time run with one head; at
d6 and d10, heads have as many space coordinates as the twin's at d4 and d8."""
RATES = (3e-3, 1e-2, 3e-2)
UPDATES, SEEDS = 2000, (1, 2, 3, 4, 5)
FOREST, TREES, TREE_SEEDS = "forest", range(1, 12), (1, 2, 3)
"""The stage of the other trees, the seeds that draw them, and the training seeds on each tree."""
FOREST_CELLS = ("d8", "d16", "d32")
FOREST_MODELS = (*TWINS, "sphere", "hybonet_plus", "lorentz_shell")
FLAGS: Flags = {
    **{"--share-all-embeddings": None, "--optimizer": "adam", "--adam-betas": "(0.9, 0.999)"},
    **{"--clip-norm": "1", "--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0", "--attention-dropout": "0", "--warmup-updates": "200"},
    **{"--lr-scheduler": "polynomial_decay", "--total-num-update": "{updates}"},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the tables."""
    parser = options.recipe_parser(HERE, __doc__, "--out ~/trees")
    exact.experiment(HERE, parser.parse_args(argv), trainings, sets, table).run()


def sets(task: str) -> exact.Sets:
    """Return the questions about the grid's tree (``data``), or about another one (``tree3``)."""
    seed = int(task.removeprefix("tree")) if task.startswith("tree") else SEED
    return make_sets(make_tree(seed), seed)


@dataclass(frozen=True)
class Tree:
    """A tree whose nodes are numbers; the root is 0.

    Attributes:
        levels: paths from the root to all nodes, level by level; the leaves are the last level.
        names: random names of the nodes, which reveal nothing about their place.
    """

    levels: Sequence[Sequence[tuple[int, ...]]]
    names: Sequence[str]


def make_tree(seed: int = SEED) -> Tree:
    """Draw a tree whose leaves are all at the last level."""
    draw, count = random.Random(seed), itertools.count(1)
    levels: list[list[tuple[int, ...]]] = [[(0,)]]
    for _ in range(LEVELS - 1):
        children = ((path, draw.randint(*CHILDREN)) for path in levels[-1])
        levels.append([(*path, next(count)) for path, several in children for _ in range(several)])
    names = [f"n{number}" for number in range(next(count))]
    draw.shuffle(names)
    return Tree(levels, names)


def make_sets(tree: Tree, seed: int = SEED) -> exact.Sets:
    """Draw pairs of leaves, with the path from the root to their lowest common ancestor as answer.

    First the level of the ancestor is drawn uniformly, then the ancestor, then a leaf below each of
    two of its children. No pair of leaves, in either order, is in two sets; the training set may
    contain a pair several times.
    """
    questions = _questions(tree, random.Random(seed))
    found: dict[str, list[exact.Example]] = {}
    others: set[frozenset[str]] = set()
    for name in reversed(SIZES):
        found[name], seen = [], set[frozenset[str]]()
        while len(found[name]) < SIZES[name]:
            example = next(questions)
            pair = frozenset(example[0].split())
            if pair not in others and (name == "train" or pair not in seen):
                seen.add(pair)
                found[name].append(example)
        others |= seen
    return {name: found[name] for name in SIZES}


def _questions(tree: Tree, draw: random.Random) -> Iterator[exact.Example]:
    children, leaves = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for *_, parent, child in itertools.chain.from_iterable(tree.levels[1:]):
        children[parent].append(child)
    for path in tree.levels[-1]:
        for node in path:
            leaves[node].append(path[-1])
    while True:
        level = draw.randrange(len(tree.levels) - 1)
        path = draw.choice(tree.levels[level])
        pair = [draw.choice(leaves[child]) for child in draw.sample(children[path[-1]], 2)]
        question, answer = (" ".join(tree.names[node] for node in part) for part in (pair, path))
        yield question, answer, f"level_{level}"


def trainings(found: Results) -> list[Training]:
    """Return all trainings known so far: the grid, then the other trees at the best rates."""
    cells = itertools.product(FOREST_CELLS, FOREST_MODELS)
    choices = {(cell, model): GRID.choice(found, cell, model) for cell, model in cells}
    others = [
        _training(model, cell, choice.best[0].rate, stage=FOREST, tree=tree, seed=seed)
        for tree in TREES
        for cell in FOREST_CELLS
        for model in FOREST_MODELS
        if not (choice := choices[cell, model]).is_open
        for seed in TREE_SEEDS
    ]
    return [*GRID.trainings(found), *others]


def _training(
    model: str, cell: str, rate: float, *, stage: str = "path", tree: int = 0, seed: int = SEEDS[0]
) -> Training:
    width, heads = CELLS[cell]
    flags = {**exact.size_flags(width=width, heads=heads), **FLAGS}
    task, setting = (f"tree{tree}", f"{cell}-tree{tree}") if tree else ("data", cell)
    return Training(stage, model, setting, rate, UPDATES, seed, flags, (VALID, TEST), task)


GRID = Grid("width", tuple(CELLS), RATES, SEEDS, _training, ONLY, "level_4")


def table(found: Results) -> str:
    """Write the grid's table and, once all models have results there, the other trees' table."""
    return "\n\n".join(filter(None, (GRID.table(found), forest(found))))


def forest(found: Results) -> str:
    """Write exact match on the other trees (means over seeds); no results: empty text."""
    rows = [
        {"width": line["setting"].partition("-")[0], **line, "exact match": right(line, TEST)}
        for line in with_values(found, stage=FOREST)
    ]
    if not rows:
        return ""
    of = pd.DataFrame(rows).groupby(["width", "model", "task"])["exact match"].agg(list)
    by_tree = of[of.map(len) == len(TREE_SEEDS)].map(statistics.fmean)
    shown = [x for x in itertools.product(FOREST_CELLS, FOREST_MODELS) if x in by_tree]
    if not shown:
        return ""
    differences = {}
    for cell, model in shown:
        twin = GRID.twin(found, cell)
        if model != twin and (cell, twin) in by_tree:
            differences[cell, model] = (by_tree[cell, model] - by_tree[cell, twin]).dropna()
    p = seeds.holm({x: seeds.sign_flips([*several]) for x, several in differences.items()})
    table = pd.DataFrame(shown, columns=["width", "model"])
    table["trees"] = [len(by_tree[x]) for x in shown]
    table["exact match"] = [[*by_tree[x]] for x in shown]
    table["p"] = [p.get(x) for x in shown]
    return (
        f"{markdown(table, {'p': '.3f'}, texts=2)}\n\n"
        "Eleven other trees, at the rates of the table above: "
        "mean ± standard deviation over trees, each the mean of its seeds; p: two-sided test "
        "against the twin by sign flips of the trees' differences, Holm-corrected over "
        f"{len(p)} tests."
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
