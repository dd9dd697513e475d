"""Split Tatoeba by distinct English sentence and prepare it.

``--table`` is ``deu-eng.zip`` or the ``deu.txt`` in it; with HYPTRANS_DATA set, it is
``tatoeba_en_de/deu-eng.zip`` there unless named. Other options go to ``hyptrans prepare text``.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.data.commands.cli import main as prepare
from hyptrans.data.sources import tatoeba
from hyptrans.support.errors import UserError, run_command
from recipes.common import options

TABLE = "tatoeba_en_de/deu-eng.zip"
SPLIT = "split-seed1-2000"
"""Of the prepared folder: the text of each set, split as by default."""


def main(argv: Sequence[str] | None = None) -> None:
    """Split and prepare; where ``hyptrans prepare`` fails, its exit status is this program's.

    Raises:
        UserError: the table cannot be used.
    """
    parser = options.script_parser(__doc__, Path(__file__))
    table = options.default_data(TABLE)
    add = parser.add_argument
    add("--table", type=Path, default=table, help="the pairs, plain or zipped")
    add(
        "--out", type=Path, default=Path("data/tatoeba_en_de"), help="folder (default: %(default)s)"
    )
    add("--held-out", type=int, default=2000, help="sentences of valid and of test (default: 2000)")
    add("--seed", type=int, default=1, help="seed of the shuffle (default: 1)")
    args, others = parser.parse_known_args(argv)
    if args.table is None:
        raise UserError("--table is needed: deu-eng.zip from https://www.manythings.org/anki")
    if args.held_out < 1:
        raise UserError(f"--held-out must be above 0, not {args.held_out}")
    pairs = tatoeba.read_table(args.table)
    sets, left_out = tatoeba.split(pairs, held_out=args.held_out, seed=args.seed)
    folder = args.out / f"split-seed{args.seed}-{args.held_out}"
    tatoeba.write(sets, folder)
    for name, members in sets.items():
        sentences = len({source for source, _ in members})
        print(f"{name}: {len(members)} pairs of {sentences} distinct English sentences")
    print(f"further translations left out of valid and test: {left_out}")
    words = ["text", "--raw-text", "--vocab-size", "8000"]
    for name in tatoeba.SETS:
        words += [f"--{name}", str(folder / f"{name}.en"), str(folder / f"{name}.de")]
    words += [*others, "--out", str(args.out)]
    print(f"$ {shlex.join(['hyptrans', 'prepare', *words])}", flush=True)
    if status := prepare(words):
        sys.exit(status)


if __name__ == "__main__":
    sys.exit(run_command(main))
