"""``hyptrans compare``: compare two systems on one test set."""

import argparse
import sys
from pathlib import Path

from hyptrans.evaluation import scores, significance
from hyptrans.support import tables
from hyptrans.support.files import short_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    kind = scores.TRANSLATIONS_HELP
    add("first", type=Path, metavar="A.out", help=kind)
    add("second", type=Path, metavar="B.out", help=f"{kind}, of the system to compare with A")
    scores.add_references(parser)


def main(args: argparse.Namespace) -> None:
    """Print a table of the comparison."""
    paths = (args.first, args.second)
    systems, references, tokenize = scores.read(paths, args.references, args.tokenize)
    first, second = systems
    found = significance.compare(first, second, references, tokenize=tokenize)
    # fairseq-generate gives all its files the same name
    names = short_names(map(str, paths))
    header = ["metric", *(tables.escaped(names[str(path)]) for path in paths)]
    rows = []
    for one in found:
        shown = [f"{v:.2f} ± {i:.2f}" for v, i in zip(one.values, one.intervals, strict=True)]
        difference = one.values[1] - one.values[0]
        rows.append([one.metric, *shown, f"{difference:+.2f}", f"{one.p:.4f}"])
    table = tables.markdown([*header, "difference", "p, one-sided"], rows)
    signatures = (f"{one.metric}: `{one.signature}`" for one in found)
    sys.stdout.write("\n".join([table, "", *signatures, ""]))
    differing = found[0].differing
    if differing < 2:
        many = "1 sentence" if differing else "no sentence"
        sys.stdout.write(
            f"p is 1: the systems differ in {many} that has a reference, too few for a bootstrap\n"
        )
