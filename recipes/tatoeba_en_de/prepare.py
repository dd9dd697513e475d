"""Split and prepare Tatoeba so that train has no sentence of valid or test, on either side.

``--table`` is ``deu-eng.zip`` or the ``deu.txt`` in it; if HYPTRANS_DATA is set, the default is
``tatoeba_en_de/deu-eng.zip`` in it. Other options go to ``hyptrans prepare text``.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.data.commands.cli import main as prepare
from hyptrans.data.sources import tatoeba
from hyptrans.support import flags
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.steps import Step
from recipes.common import options
from recipes.common.translation import Run, step

TABLE = "tatoeba_en_de/deu-eng.zip"
SPLIT = "split-both-seed1-2000"
"""Folder in the prepared one with the text of each set, split by the default options."""


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add ``--table``."""
    table = options.default_data(TABLE)
    parser.add_argument("--table", type=Path, default=table, help="the pairs, plain or zipped")


def required(table: Path | None) -> Path:
    """Return the value of ``--table``; raise ``UserError`` if it is missing."""
    if table is None:
        raise UserError("--table is needed: deu-eng.zip from https://www.manythings.org/anki")
    return table


def prepared(run: Run, table: Path) -> Step:
    """Return the step that runs this program."""
    command = ["python", "-m", "recipes.tatoeba_en_de.prepare"]
    command += ["--table", str(table), "--out", str(run.data)]
    return step(command, "prepare", run.out, run.data, inputs=[table], resumes=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Split and prepare; if ``hyptrans prepare`` fails, exit with its status.

    Raises:
        UserError: the table cannot be used.
    """
    parser = options.script_parser(__doc__, Path(__file__))
    add_table(parser)
    out = Path("data/tatoeba_en_de")
    parser.add_argument("--out", type=Path, default=out, help="folder (default: %(default)s)")
    options.add_number(parser, "--held-out", 2000, "sentences of valid and of test")
    flags.add_seed(parser, "seed of the shuffle")
    args, others = parser.parse_known_args(argv)
    pairs = tatoeba.read_table(required(args.table))
    sets, left_out = tatoeba.split(pairs, held_out=args.held_out, seed=args.seed)
    folder = args.out / f"split-both-seed{args.seed}-{args.held_out}"
    tatoeba.write(sets, folder)
    for name, members in sets.items():
        sentences = len({source for source, _ in members})
        print(f"{name}: {len(members)} pairs of {sentences} distinct English sentences")
    print(f"pairs left out, as a small set has their sentence or its translation: {left_out}")
    words = ["text", "--raw-text", "--vocab-size", "8000"]
    for name in tatoeba.SETS:
        words += [f"--{name}", str(folder / f"{name}.en"), str(folder / f"{name}.de")]
    words += [*others, "--out", str(args.out)]
    print(f"$ {shlex.join(['hyptrans', 'prepare', *words])}", flush=True)
    if status := prepare(words):
        sys.exit(status)


if __name__ == "__main__":
    sys.exit(run_command(main))
