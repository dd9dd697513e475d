"""Lowest common ancestors in a random tree: where trees certainly are, does the geometry pay?

A question is two leaves, its answer the path from the root to their lowest common ancestor.
Exact match by width of the states. Trainings run one after the other, and the same command goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common import exact, lines
from recipes.common.exact import MODELS, Flags, Training, size_flags
from recipes.common.grid import Grid
from recipes.trees.tree import make_sets, make_tree

HERE = Path(__file__).resolve().parent
CELLS = {
    **{f"d{width}": (width, 2) for width in (4, 8, 16, 32)},
    **{f"d{width}h1": (width, 1) for width in (4, 8)},
    **{"d6": (6, 2), "d10": (10, 2)},
}
"""Width and heads: at small widths a head of few numbers has one less of space."""
_TIMES_WITHIN = tuple(model for model in MODELS if model != "lorentz_shell")
ONLY = {
    **{"d4h1": _TIMES_WITHIN, "d8h1": _TIMES_WITHIN},
    **{"d6": ("hybonet_plus",), "d10": ("hybonet_plus",)},
}
"""One head is for models whose heads each lose a coordinate to a time; at d6 and d10 heads have as
many of space as the twin's at d4 and d8."""
RATES = (3e-3, 1e-2, 3e-2)
UPDATES, SEEDS = 2000, (1, 2, 3, 4, 5)
VALID, TEST = "valid", "test"
_FLAGS: Flags = {
    **{"--share-all-embeddings": None, "--optimizer": "adam", "--adam-betas": "(0.9, 0.999)"},
    **{"--clip-norm": "1", "--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0", "--attention-dropout": "0", "--warmup-updates": "200"},
    **{"--lr-scheduler": "polynomial_decay", "--total-num-update": "{updates}"},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is not done yet, and write the table."""
    parser = lines.make_parser(HERE, __doc__, "--out ~/trees")
    sets = cache(lambda task: make_sets(make_tree()))
    exact.run(HERE, parser.parse_args(argv), GRID.trainings, sets, table)


def _training(model: str, cell: str, rate: float) -> Training:
    width, heads = CELLS[cell]
    flags = {**size_flags(width=width, heads=heads), **_FLAGS}
    return Training("path", model, cell, rate, UPDATES, SEEDS[0], flags, (VALID, TEST))


GRID = Grid("width", tuple(CELLS), RATES, SEEDS, _training, VALID, TEST, ONLY, "level_4")
table = GRID.table


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=lines.STOPPED))
