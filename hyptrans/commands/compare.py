"""``hyptrans compare``: two systems on one test set."""

import argparse
import sys
from pathlib import Path

from hyptrans.evaluation import scores, significance
from hyptrans.support import tables
from hyptrans.support.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    kind = scores.TRANSLATIONS_HELP
    add("first", type=Path, metavar="A.out", help=kind)
    add("second", type=Path, metavar="B.out", help=f"{kind}, of the system to compare with A")
    add("references", type=Path, metavar="REF", help="raw references, one a line")
    add(
        "--samples",
        type=int,
        default=significance.SAMPLES,
        metavar="N",
        help="resamplings of the test set (default: %(default)s)",
    )


def main(args: argparse.Namespace) -> None:
    """Print a table.

    Raises:
        UserError: files that do not belong together.
    """
    if args.samples < 2:
        raise UserError(f"--samples must be at least 2, got {args.samples}")
    references = scores.read_references(args.references)
    systems = []
    for path in (args.first, args.second):
        systems.append(scores.read_translations(path))
        scores.check_lengths(systems[-1], path, references, args.references)
    found = significance.compare(systems[0], systems[1], references, samples=args.samples)
    names = [args.first.name, args.second.name]
    if names[0] == names[1]:
        # fairseq-generate calls them all alike
        names = [str(args.first), str(args.second)]
    rows = []
    for one in found:
        shown = [f"{v:.2f} ± {i:.2f}" for v, i in zip(one.values, one.intervals, strict=True)]
        difference = one.values[1] - one.values[0]
        rows.append([one.metric, *shown, f"{difference:+.2f}", f"{one.p:.4f}"])
    table = tables.markdown(
        ["metric", *map(tables.escaped, names), "difference", "p, one-sided"], rows
    )
    signatures = (f"{one.metric}: `{one.signature}`" for one in found)
    sys.stdout.write("\n".join([table, "", *signatures, ""]))
