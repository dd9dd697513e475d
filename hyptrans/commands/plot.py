"""``hyptrans plot``: draw learning curves with matplotlib; the same logs give the same bytes."""

import argparse
import io
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, clean
from hyptrans.support.extras import require
from hyptrans.support.files import read_json, short_names, whole_file
from hyptrans.support.flags import add_out

TITLES = {
    "train_inner loss": "training loss",
    "valid loss": "validation loss",
    "valid ppl": "validation perplexity",
    "valid bleu": "validation BLEU",
}
"""Metrics of fairseq's log lines, and the titles of their charts."""
_HISTORY = {"loss": "train_inner loss", "eval_ppl": "valid ppl", "eval_bleu": "valid bleu"}
"""Metrics in a checkpoint of ``hyptrans train``, and fairseq's names for them."""
_LINE = re.compile(r"(?:\| |^)(train_inner|valid) \|(.*)", re.MULTILINE)
# loss=6.9, | loss 6.9 | or "valid_loss": "6.9", by --log-format; matplotlib takes no huge numbers
_PAIR = re.compile(
    r'\b(?:valid_)?(loss|ppl|bleu|num_updates)(?:=| |": "?)'
    r"(\d{1,15}(?:\.\d+)?(?:e[-+]?\d\d?)?)(?![\w.])"
)
Curves = dict[str, dict[int, float]]
"""Values of one training by number of updates, by key of :data:`TITLES`."""
_METADATA: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""Metadata of each kind of file, without the time at which it was written."""
_COLORS = ["#0063a6", "#c24e00", "#00795a", "#9e3d7b", "#846000", "#4d5b6a", "#b3261e", "#5b4bc4"]
_STYLE: dict[str, Any] = {
    **{"axes.grid": True, "font.size": 9, "lines.marker": ".", "savefig.dpi": 200},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"},
    "axes.prop_cycle": f"cycler(linestyle=['-', '--', ':', '-.']) * cycler(color={_COLORS})",
    # text stays text, as publishers require; a name may contain dollar signs
    **{"svg.fonttype": "none", "svg.hashsalt": "hyptrans", "pdf.fonttype": 42},
    "text.parse_math": False,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    kinds = "log of fairseq-train, or folder that hyptrans train wrote"
    add("logs", nargs="+", type=Path, metavar="LOG", help=kinds)
    about = "SVG, PDF or PNG, by its ending (default: %(default)s)"
    add_out(parser, about, default="curves.svg")
    about = "names of the curves (default: of the logs); logs with the same name form one curve"
    add("--names", nargs="+", metavar="NAME", help=about)


def main(args: argparse.Namespace) -> None:
    """Draw the curves."""
    form = args.out.suffix.lower().removeprefix(".")
    if form not in _METADATA:
        raise UserError(f"--out {args.out} ends in none of .svg, .pdf and .png: name another")
    bare = [str(path.parent / path.stem) for path in args.logs]
    names = args.names or [short_names(bare)[name] for name in bare]
    if len(names) != len(args.logs):
        raise UserError(
            f"{len(args.logs)} logs have {len(names)} names: give --names one name per log"
        )
    courses: dict[str, Curves] = {}
    for path, name in zip(args.logs, map(clean, names), strict=True):
        course = courses.setdefault(name, {})
        for key, updates, value in read_log(path):
            course.setdefault(key, {})[updates] = value
    picture = draw(courses, form)
    with whole_file(args.out) as file:
        file.write(picture)
    sys.stdout.write(f"{args.out}\n")


def read_log(path: Path) -> list[tuple[str, int, float]]:
    """Return the points of a training's curves: key of :data:`TITLES`, updates, value.

    ``path`` is the output of ``fairseq-train``, in ``--log-format`` simple, json or tqdm, or a
    folder that ``hyptrans train`` wrote, whose newest checkpoint has the whole history.

    Raises:
        UserError: there is no such file, or it has no lines of a training.
    """
    states = path.glob("checkpoint-[0-9]*/trainer_state.json")
    newest = max(states, key=lambda one: int(one.parent.name.partition("-")[2]), default=None)
    if newest is not None:
        try:
            history = read_json(newest.read_text(encoding="utf-8"))["log_history"]
            return [
                (_HISTORY[name], line["step"], float(line[name]))
                for line in history
                for name in _HISTORY.keys() & line.keys()
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{newest} is damaged: {error}") from error
    if not path.is_file():
        raise UserError(f"{path} is neither a log nor a folder that hyptrans train wrote: name one")
    points = []
    for part, line in _LINE.findall(path.read_text(encoding="utf-8", errors="replace")):
        values = {f"{part} {name}": float(value) for name, value in _PAIR.findall(line)}
        if (updates := values.get(f"{part} num_updates")) is not None:
            points += [(key, int(updates), values[key]) for key in TITLES.keys() & values.keys()]
    if not points:
        raise UserError(
            f"{path} has no lines of a training: name what fairseq-train printed (train_inner or "
            "valid), or a folder of hyptrans train"
        )
    return points


def draw(courses: Mapping[str, Curves], form: str) -> bytes:
    """Return an image file with a chart for each metric, perplexity on a logarithmic axis."""
    require("matplotlib", "plot")
    from matplotlib.figure import Figure  # not pyplot, which would look for a display
    from matplotlib.style import context
    from matplotlib.ticker import LogLocator

    keys = [key for key in TITLES if any(key in course for course in courses.values())]
    with context(["default", _STYLE]):
        figure = Figure((7.6, 2.9 * len(keys) + 0.2 * len(courses)), layout="constrained")
        for key, axes in zip(keys, figure.subplots(len(keys), squeeze=False)[:, 0], strict=True):
            axes.set(title=TITLES[key], xlabel="updates")
            if key == "valid ppl":
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.minorticks_off()
            for course in courses.values():
                points = dict(sorted(course.get(key, {}).items()))
                axes.plot([*points], [*points.values()])
        figure.legend(axes.get_lines(), courses, loc="outside lower left", frameon=False)
        file = io.BytesIO()
        title = f"Learning curves of {', '.join(courses)}"
        figure.savefig(file, format=form, metadata={"Title": title, **_METADATA[form]})
    return file.getvalue()
