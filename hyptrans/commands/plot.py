"""``hyptrans plot``: learning curves."""

import argparse
import sys
from pathlib import Path

from hyptrans.evaluation.curves import read_log
from hyptrans.support.errors import UserError
from hyptrans.support.files import out_file, write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("logs", nargs="+", type=Path, metavar="LOG", help="what fairseq-train printed")
    add("--out", type=out_file, default="curves.svg", metavar="FILE", help="default: %(default)s")
    add("--names", nargs="+", metavar="NAME", help="of the trainings (default: of the logs)")


def main(args: argparse.Namespace) -> None:
    """Draw the curves.

    Raises:
        UserError: a log is none, names and logs differ in number, or ``--out`` is no SVG file.
    """
    if args.out.suffix.lower() != ".svg":
        raise UserError(f"--out {args.out} does not end in .svg, which is all that is drawn")
    names = args.names or [path.stem for path in args.logs]
    if len(names) != len(args.logs):
        raise UserError(f"{len(names)} --names for {len(args.logs)} logs: one for each")
    from hyptrans.evaluation.chart import draw

    courses = [read_log(path, name) for path, name in zip(args.logs, names, strict=True)]
    write_whole(args.out, draw(courses))
    sys.stdout.write(f"{args.out}\n")
