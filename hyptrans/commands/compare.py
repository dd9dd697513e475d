"""``hyptrans compare``: compare two systems on one test set."""

import argparse
import sys
from pathlib import Path

from hyptrans.evaluation import scores, significance
from hyptrans.support import tables
from hyptrans.support.errors import UserError

_MOST_SAMPLES = 100_000
"""Most resamplings of the test set; this many fit into memory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    kind = scores.TRANSLATIONS_HELP
    add("first", type=Path, metavar="A.out", help=kind)
    add("second", type=Path, metavar="B.out", help=f"{kind}, of the system to compare with A")
    add("references", type=Path, metavar="REF", help="raw references, one a line")
    scores.add_tokenize(parser)
    add(
        "--samples",
        type=int,
        default=significance.SAMPLES,
        metavar="N",
        help="resamplings of the test set (default: %(default)s)",
    )


def main(args: argparse.Namespace) -> None:
    """Print a table of the comparison.

    Raises:
        UserError: the files do not belong together, or the tokenizer is not installed.
    """
    if not 2 <= args.samples <= _MOST_SAMPLES:
        raise UserError(f"--samples must be 2 to {_MOST_SAMPLES:,}, got {args.samples}")
    references = scores.read_references(args.references)
    systems = []
    for path in (args.first, args.second):
        systems.append(scores.read_translations(path))
        scores.check_lengths(systems[-1], path, references, args.references)
    tokenize = scores.tokenizer_of(args.references, references, args.tokenize)
    found = significance.compare(
        systems[0], systems[1], references, samples=args.samples, tokenize=tokenize
    )
    names = [args.first.name, args.second.name]
    if names[0] == names[1]:
        # fairseq-generate gives all its files the same name
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
    differing = found[0].differing
    sys.stdout.write("\n".join([table, "", *signatures, ""]))
    if differing < 2:
        many = "1 sentence" if differing else "no sentence"
        sys.stdout.write(
            f"p is 1: the systems differ in {many} that has a reference, and a choice of sentences "
            "cannot show that they differ in others\n"
        )
