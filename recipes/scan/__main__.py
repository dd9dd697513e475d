"""SCAN: commands to actions, in three splits; exact match of hyperbolic Transformers and a twin."""

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.lines import read_lines
from recipes.common import exact, options
from recipes.common.exact import TEST, VALID, Flags, Training, size_flags
from recipes.common.grid import Grid

HERE = Path(__file__).resolve().parent
FOLDER = "scan"
SPLITS = ("simple", "length", "addprim_jump")
HELD_OUT = 20
"""One in this many training pairs is for validation, because SCAN has no validation set."""
RATES, UPDATES, SEEDS = (1e-3, 2e-3, 4e-3), 3000, (1, 2, 3, 4, 5)
_FLAGS: Flags = {
    **size_flags(width=64, heads=4),
    **{"--share-decoder-input-output-embed": None, "--optimizer": "adam"},
    **{"--adam-betas": "(0.9, 0.999)", "--clip-norm": "1", "--criterion": "cross_entropy"},
    **{"--batch-size": "128", "--dropout": "0.1", "--attention-dropout": "0"},
    **{"--lr-scheduler": "inverse_sqrt", "--warmup-updates": "300"},
}
_LINE = re.compile("IN: (.+) OUT: (.+)")


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the table."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/scan --out ~/scan_runs")
    contents = "tasks_train_SPLIT.txt and tasks_test_SPLIT.txt, plain or .gz"
    options.add_data(parser, contents, name=FOLDER)
    args = parser.parse_args(argv)
    exact.experiment(HERE, args, GRID.trainings, partial(sets, args.data), table).run()


def sets(data: Path | None, split: str) -> exact.Sets:
    """Return the examples of a split, with a validation set held out of the training set."""
    data = options.required(data, "SCAN", "brendenlake/SCAN")
    train = examples(data, f"tasks_train_{split}.txt")
    return {
        "train": [one for i, one in enumerate(train) if i % HELD_OUT],
        VALID: train[::HELD_OUT],
        TEST: examples(data, f"tasks_test_{split}.txt"),
    }


def examples(data: Path, name: str) -> list[exact.Example]:
    """Read commands and actions; the kind is the number of actions, in tens.

    Raises:
        UserError: the file is missing, or a line does not have this form.
    """
    path = options.file(data, name)
    found: list[exact.Example] = []
    for number, line in enumerate(read_lines(path), start=1):
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise UserError(f"{path}, line {number} is not IN: command OUT: actions")
        tens = len(parts[2].split()) // 10 * 10
        found.append((parts[1], parts[2], f"{tens}_to_{tens + 9}"))
    return found


def _training(model: str, split: str, rate: float) -> Training:
    answers = (VALID, TEST)
    return Training("scan", model, split, rate, UPDATES, SEEDS[0], _FLAGS, answers, split)


GRID = Grid("split", SPLITS, RATES, SEEDS, _training)
table = GRID.table


if __name__ == "__main__":
    sys.exit(run_command(main))
