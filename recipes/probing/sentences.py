"""Draw distinct sentences from a text, a line each, into train.txt, dev.txt and test.txt."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.dataprep.corpus import read_lines
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_whole
from recipes.common import options


def main(argv: Sequence[str] | None = None) -> None:
    """Write the three files.

    Raises:
        UserError: the text has fewer sentences.
    """
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="FILE", help="a sentence a line, or gzipped")
    add("--sentences", type=int, required=True, metavar="N", help="sentences of all three files")
    add("--held-out", type=int, required=True, metavar="N", help="of dev and of test, each")
    add("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    args = parser.parse_args(argv)
    options.check_positive(args, "sentences", "held_out")
    if args.sentences <= 2 * args.held_out:
        raise UserError(f"--sentences {args.sentences} leaves none to train on; lower --held-out")
    lines = list(dict.fromkeys(filter(None, map(str.strip, read_lines(args.text)))))
    if len(lines) < args.sentences:
        raise UserError(
            f"{args.text} has {len(lines)} distinct sentences and {args.sentences} are asked for: "
            "lower --sentences"
        )
    drawn = random.Random(args.seed).sample(lines, args.sentences)
    first, second = args.held_out, 2 * args.held_out
    sets = {"dev": drawn[:first], "test": drawn[first:second], "train": drawn[second:]}
    for name, members in sets.items():
        write_whole(args.out / f"{name}.txt", "".join(f"{line}\n" for line in members))
        print(f"{name}: {len(members)} sentences")


if __name__ == "__main__":
    sys.exit(run_command(main))
