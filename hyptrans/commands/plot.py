"""``hyptrans plot``: learning curves."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.evaluation.charts import FORMATS, Curve, Panel, learning_curves
from hyptrans.evaluation.curves import METRICS, PERPLEXITY, Course, read_log
from hyptrans.support.errors import UserError
from hyptrans.support.files import short_names, whole_file
from hyptrans.support.flags import add_out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("logs", nargs="+", type=Path, metavar="LOG", help="what fairseq-train printed")
    about = "SVG, PDF or PNG, by its ending (default: %(default)s)"
    add_out(parser, about, default="curves.svg")
    add("--names", nargs="+", metavar="NAME", help="of the trainings (default: of the logs)")


def main(args: argparse.Namespace) -> None:
    """Draw the curves.

    Raises:
        UserError: a log is none, names and logs differ in number, or ``--out`` has another ending.
        MissingExtra: matplotlib is not installed.
    """
    form = args.out.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        endings = " or ".join(f".{form}" for form in FORMATS)
        raise UserError(f"--out {args.out} does not end in {endings}, which are what is drawn")
    names = args.names or names_of(args.logs)
    if len(names) != len(args.logs):
        raise UserError(f"{len(names)} --names for {len(args.logs)} logs: one for each")
    courses = [read_log(path, name) for path, name in zip(args.logs, names, strict=True)]
    title = f"Learning curves of {', '.join(names)}"
    picture = learning_curves(panels_of(courses), title, form)
    with whole_file(args.out) as file:
        file.write(picture)
    sys.stdout.write(f"{args.out}\n")


def names_of(logs: Sequence[Path]) -> list[str]:
    """The shortest ends of the logs' paths that tell all apart, without ``.log`` where they can."""
    whole = [str(path) for path in logs]
    bare = [str(path.parent / path.stem) for path in logs]
    chosen = bare if len(set(bare)) == len(set(whole)) else whole
    found = short_names(chosen)
    return [found[name] for name in chosen]


def panels_of(courses: Sequence[Course]) -> list[Panel]:
    """A chart for each metric that a training has, of perplexity on a logarithmic axis."""
    panels = []
    for title in (title for metrics in METRICS.values() for title in metrics.values()):
        logarithmic = title == PERPLEXITY
        curves = []
        for course in courses:
            points = sorted(course.curves.get(title, {}).items())
            points = [(update, value) for update, value in points if value > 0 or not logarithmic]
            curves += [Curve(course.name, points)] * bool(points)
        if curves:
            panels.append(Panel(title, curves, logarithmic))
    return panels
