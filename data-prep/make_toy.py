"""Write the toy treebank: generated parallel text with gold dependency trees on both sides."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.support.errors import run_command
from hyptrans.toy import treebank as toy


def _parser() -> argparse.ArgumentParser:
    defaults = toy.Settings()
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        epilog="example: python data-prep/make_toy.py --out runs/toy --train 5000 --seed 7",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        # the formatter would add that it is None
        default=argparse.SUPPRESS,
        help="folder to write to (required)",
    )
    for split in ("train", "valid", "test"):
        size = getattr(defaults, split)
        parser.add_argument(f"--{split}", type=int, default=size, help="size in sentence pairs")
    parser.add_argument(
        "--max-words",
        type=int,
        default=defaults.max_words,
        help="longest sentence of either side in words, punctuation included",
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="decides every sentence")
    parser.add_argument("--overwrite", action="store_true", help="replace what is in the folder")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the arguments, write the treebank, say where."""
    args = _parser().parse_args(argv)
    settings = toy.Settings(args.train, args.valid, args.test, args.max_words, args.seed)
    written = toy.write(args.out, settings, overwrite=args.overwrite)
    print(f"{args.out}: {'written' if written else 'already there, reused'}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped="run it again with --overwrite"))
