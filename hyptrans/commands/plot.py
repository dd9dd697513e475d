"""``hyptrans plot``: draw learning curves with matplotlib; the same logs give the same bytes."""

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyptrans.evaluation.curves import METRICS, PERPLEXITY, Course, read_log
from hyptrans.support.errors import UserError, clean
from hyptrans.support.extras import require
from hyptrans.support.files import short_names, whole_file
from hyptrans.support.flags import add_out

# metadata that would record when and by which version a file was written
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
_STYLE = {
    **{"axes.grid": True, "grid.color": "#d6dbe0", "font.size": 9, "savefig.dpi": 200},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"},
    # text stays text, as publishers require; a name may contain dollar signs
    **{"svg.fonttype": "none", "svg.hashsalt": "hyptrans", "pdf.fonttype": 42},
    "text.parse_math": False,
}
_COLORS = ["#0063a6", "#c24e00", "#00795a", "#9e3d7b", "#846000", "#4d5b6a", "#b3261e", "#5b4bc4"]
_DASHES = ("-", "--", ":", "-.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    kinds = "what fairseq-train or hyptrans train printed, or the folder of a hyptrans train"
    add("logs", nargs="+", type=Path, metavar="LOG", help=kinds)
    about = "SVG, PDF or PNG, by its ending (default: %(default)s)"
    add_out(parser, about, default="curves.svg")
    about = "of the trainings (default: of the logs); logs of one name are parts of one training"
    add("--names", nargs="+", metavar="NAME", help=about)


def main(args: argparse.Namespace) -> None:
    """Draw the curves.

    Raises:
        UserError: a log is none, names and logs differ in number, or ``--out`` has another ending.
        MissingExtra: matplotlib is not installed.
    """
    form = args.out.suffix.lower().removeprefix(".")
    if form not in _METADATA:
        endings = " or ".join(f".{form}" for form in _METADATA)
        raise UserError(f"--out {args.out} does not end in {endings}, which are what is drawn")
    names = args.names or names_of(args.logs)
    if len(names) != len(args.logs):
        raise UserError(f"{len(names)} --names for {len(args.logs)} logs: one for each")
    courses: dict[str, Course] = {}
    for path, name in zip(args.logs, map(clean, names), strict=True):
        courses.setdefault(name, Course(name)).go_on(read_log(path))
    picture = draw([*courses.values()], form)
    with whole_file(args.out) as file:
        file.write(picture)
    sys.stdout.write(f"{args.out}\n")


def names_of(logs: Sequence[Path]) -> list[str]:
    """Return the shortest path endings that distinguish the logs, without ``.log`` if possible."""
    whole = [str(path) for path in logs]
    bare = [str(path.parent / path.stem) for path in logs]
    chosen = bare if len(set(bare)) == len(set(whole)) else whole
    found = short_names(chosen)
    return [found[name] for name in chosen]


def draw(courses: Sequence[Course], form: str) -> bytes:
    """Return an image file with a chart for each metric, perplexity on a logarithmic axis."""
    titles = [title for metrics in METRICS.values() for title in metrics.values()]
    titles = [title for title in titles if any(title in course.curves for course in courses)]
    # not pyplot, which would look for a display
    figure_of: Any = require("matplotlib.figure", "plot").Figure
    ticker: Any = require("matplotlib.ticker", "plot")
    with require("matplotlib.style", "plot").context(["default", _STYLE]):
        figure = figure_of((7.6, 2.9 * len(titles) + 0.2 * len(courses)), layout="constrained")
        lines: dict[str, Any] = {}
        every = figure.subplots(len(titles), squeeze=False)[:, 0]
        for title, axes in zip(titles, every, strict=True):
            logarithmic = title == PERPLEXITY
            axes.set(title=title, xlabel="updates", yscale="log" if logarithmic else "linear")
            if logarithmic:
                axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.minorticks_off()
            for i, course in enumerate(courses):
                points = sorted(course.curves.get(title, {}).items())
                points = [point for point in points if point[1] > 0 or not logarithmic]
                dashes = _DASHES[i // len(_COLORS) % len(_DASHES)]
                look = {"color": _COLORS[i % len(_COLORS)], "linestyle": dashes, "marker": "."}
                (line,) = axes.plot([x for x, _ in points], [y for _, y in points], **look)
                lines[course.name] = line
        figure.legend(lines.values(), lines.keys(), loc="outside lower left", frameon=False)
        file = io.BytesIO()
        title = f"Learning curves of {', '.join(lines)}"
        figure.savefig(file, format=form, metadata={"Title": title, **_METADATA[form]})
    return file.getvalue()
