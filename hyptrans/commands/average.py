"""``hyptrans average``: merge several checkpoints of one training into one."""

import argparse
import sys
from pathlib import Path

from hyptrans.support.errors import UserError, one_line
from hyptrans.support.files import check_is_checkpoint
from hyptrans.support.flags import add_out, positive
from hyptrans.support.logs import quiet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add(
        "checkpoints",
        nargs="+",
        type=Path,
        metavar="CKPT",
        help="checkpoints, or the one folder to choose from by --last or --best",
    )
    chosen = parser.add_mutually_exclusive_group()
    about = "take the N newest of the folder"
    chosen.add_argument("--last", type=positive, metavar="N", help=about)
    about = "take the N best of the folder on the validation set"
    chosen.add_argument("--best", type=positive, metavar="N", help=about)
    add_out(parser, "checkpoint to write", required=True)


def main(args: argparse.Namespace) -> None:
    """Write the average.

    Raises:
        UserError: the checkpoints cannot be averaged, or writing ``--out`` would do harm.
    """
    paths, choosing = list(args.checkpoints), args.last is not None or args.best is not None
    if choosing and (len(paths) != 1 or paths[0].is_file()):
        raise UserError("--last and --best choose from one folder: name that alone")
    if choosing and not paths[0].is_dir():
        raise UserError(f"folder {paths[0]} does not exist: name a --save-dir")
    for path in paths:
        if not path.is_dir():
            check_is_checkpoint(path)
    with quiet():
        from hyptrans.fairseq import average

        average.check_out(args.out, paths)
        if choosing:
            paths = average.choose(paths[0], last=args.last, best=args.best)
        average.write(average.average(paths), args.out)
    sys.stdout.write(f"{args.out}: average of {', '.join(one_line(path.name) for path in paths)}\n")
