"""``hyptrans average``: merge several checkpoints of one training into one."""

import argparse
import sys
from pathlib import Path

from hyptrans.support.errors import UserError, one_line
from hyptrans.support.flags import add_out, positive
from hyptrans.support.logs import quiet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "checkpoints; with --last, the folder that holds them"
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="CKPT", help=about)
    about = "average the N newest checkpoints of the folder"
    parser.add_argument("--last", type=positive, metavar="N", help=about)
    add_out(parser, "checkpoint to write", required=True)


def main(args: argparse.Namespace) -> None:
    """Write the average."""
    paths = list(args.checkpoints)
    if args.out.exists():
        raise UserError(f"--out {args.out} already exists: name another file")
    for path in paths:
        path.stat()  # what is missing is named before torch and fairseq are imported
        if path.is_dir() and args.last is None:
            raise UserError(f"{path} is a folder: choose from it with --last N")
    if args.last is not None and (len(paths) != 1 or not paths[0].is_dir()):
        raise UserError("--last chooses from one folder: name a --save-dir alone")
    with quiet():
        from hyptrans.fairseq import average

        if args.last is not None:
            paths = average.newest(paths[0], args.last)
        average.write(average.average(paths), args.out)
    sys.stdout.write(f"{args.out}: average of {', '.join(one_line(path.name) for path in paths)}\n")
