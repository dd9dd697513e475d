"""Charts by matplotlib: SVG for pages, PDF and PNG for papers; the same values, the same bytes.

:func:`learning_curves` draws a chart of lines for each metric, :func:`scores` a bar for each model
with a dot for each seed. Both return the bytes of a file, to be written whole; a recipe's picture
beside its README is ``learning_curves(…).decode()``. Colors, marks and dashes go by the order of
names, so that models listed in one order look alike in all charts.
"""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyptrans.support.errors import clean
from hyptrans.support.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# what would tell when and by which version a file was written
_METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
FORMATS = tuple(_METADATA)
"""The formats of files."""
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#d6dbe0",
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "savefig.dpi": 200,
    # the first is measured by, also where a page shows another
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "svg.fonttype": "none",
    "svg.hashsalt": "hyptrans",
    # as editors of papers ask for
    "pdf.fonttype": 42,
    # a name may hold dollars
    "text.parse_math": False,
}
_COLORS = ["#0063a6", "#c24e00", "#00795a", "#9e3d7b", "#846000", "#4d5b6a", "#b3261e", "#5b4bc4"]
_MARKS = "os^DvPX"
_DASHES = ("-", "--", ":", "-.")
_MARKED = 12
"""Marks along a line, about."""
_WIDTH, _PANEL, _LINE = 7.6, 2.9, 0.2
"""Inches: of a picture, of a chart in it with its title, of a name in the legend."""
_LETTER = 0.085
"""Width of a letter in inches, about."""
_WIDE = 20.0
"""Of a longer logarithmic axis 1, 2 and 5 times the powers of ten are marked, no more."""


@dataclass(frozen=True)
class Curve:
    """A line of a chart.

    Attributes:
        name: in the legend.
        points: update, or size, and value.
        band: lowest and highest value at each point, as over seeds; or nothing.
        dots: further values, as of each seed; or nothing.
    """

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float]] = ()
    dots: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Panel:
    """The chart of one metric.

    Attributes:
        title: stands above.
        curves: its lines.
        logarithmic: equal ratios of values, which are above 0, are equally long.
        most: the axis ends at this times the lowest value, so that ends can be told apart.
        sizes: of models, which points are over instead of updates; equal ratios are equally long.
        below: what the lower axis shows.
    """

    title: str
    curves: Sequence[Curve]
    logarithmic: bool = False
    most: float = math.inf
    sizes: Sequence[float] = ()
    below: str = "updates"


@dataclass(frozen=True)
class Row:
    """The scores of a model.

    Attributes:
        name: at the left.
        values: of its seeds, one at least.
        text: at the right, as the mean with its deviation.
    """

    name: str
    values: Sequence[float]
    text: str = ""


def learning_curves(panels: Sequence[Panel], title: str, form: str = "svg") -> bytes:
    """A file with one chart under the other, over updates or sizes, and the names of lines below.

    Args:
        panels: one at least.
        title: of the file, which a screen reader says.
        form: one of :data:`FORMATS`.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    columns = max(1, min(3, int(_WIDTH / (_LETTER * max(map(len, names)) + 0.6))))
    legend = _LINE * math.ceil(len(names) / columns) + 0.2
    height = _PANEL * len(panels) + legend
    with _style():
        figure = _figure(height)
        for i, panel in enumerate(panels):
            bottom = height - _PANEL * (i + 1) + 0.5
            size = (0.7 / _WIDTH, bottom / height, 1 - 0.85 / _WIDTH, (_PANEL - 0.8) / height)
            _draw(figure.add_axes(size), panel, names)
        lines = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
        figure.legend(
            [lines[_shown(name)] for name in names],
            [_shown(name) for name in names],
            loc="upper left",
            bbox_to_anchor=(0.6 / _WIDTH, legend / height),
            ncols=columns,
            frameon=False,
        )
        return _file(figure, title, form)


def scores(rows: Sequence[Row], title: str, form: str = "svg") -> bytes:
    """A file with a bar for the mean of each model, from 0, and a dot for each of its seeds.

    Args:
        rows: one at least, from the top down.
        title: stands above; a screen reader says it.
        form: one of :data:`FORMATS`.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    height = 0.3 * len(rows) + 0.75
    left, right = (
        _LETTER * max(map(len, texts)) + 0.2
        for texts in ([row.name for row in rows], [row.text for row in rows])
    )
    with _style():
        figure = _figure(height)
        size = (left / _WIDTH, 0.35 / height, 1 - (left + right) / _WIDTH, 1 - 0.7 / height)
        axes = figure.add_axes(size, title=title, ylim=(len(rows) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")
        for i, row in enumerate(rows):
            color = _COLORS[i % len(_COLORS)]
            axes.barh(i, statistics.mean(row.values), 0.55, color=color, alpha=0.45)
            axes.plot(row.values, [i] * len(row.values), "o", color="#1b1f24", markersize=3)
            axes.text(1.02, i, _shown(row.text), transform=axes.get_yaxis_transform(), va="center")
        axes.set_yticks(range(len(rows)), [_shown(row.name) for row in rows])
        axes.tick_params(axis="y", length=0)
        return _file(figure, title, form)


def _style() -> AbstractContextManager[None]:
    """Our settings on top of matplotlib's own, whatever a user's file of settings says."""
    context: AbstractContextManager[None] = require("matplotlib.style", "plot").context(
        ["default", _STYLE]
    )
    return context


def _figure(height: float) -> Figure:
    # no pyplot, which would look for a display
    figure: Figure = require("matplotlib.figure", "plot").Figure((_WIDTH, height))
    return figure


def _file(figure: Figure, title: str, form: str) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=form, metadata={"Title": clean(title), **_METADATA[form]})
    return file.getvalue()


def _shown(name: str) -> str:
    # a label that begins with an underscore stays out of legends
    return clean(name) if not name.startswith("_") else f"\N{ZERO WIDTH SPACE}{clean(name)}"


def _draw(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    """Draw the lines of a chart; the first lies on top."""
    for curve in reversed(panel.curves):
        number = names.index(curve.name)
        color = _COLORS[number % len(_COLORS)]
        updates = [update for update, _ in curve.points]
        axes.plot(
            updates,
            [value for _, value in curve.points],
            color=color,
            marker=_MARKS[number % len(_MARKS)],
            markevery=max(1, len(updates) // _MARKED),
            linestyle=_DASHES[number // len(_COLORS) % len(_DASHES)],
            label=_shown(curve.name),
        )
        if curve.band:
            lowest, highest = zip(*curve.band, strict=True)
            axes.fill_between(updates, lowest, highest, color=color, alpha=0.2, linewidth=0)
        if curve.dots:
            places, dots = zip(*curve.dots, strict=True)
            axes.scatter(places, dots, 9, color=color, alpha=0.6, linewidth=0)
    values = [value for curve in panel.curves for _, value in (*curve.points, *curve.dots)]
    values += [value for curve in panel.curves for pair in curve.band for value in pair]
    _scale(axes, panel, min(values), max(values))
    axes.set_xlabel(panel.below)
    if panel.sizes:
        axes.set_xscale("log", base=2)
        axes.set_xticks(panel.sizes)
        axes.minorticks_off()
    else:
        axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _scale(axes: Axes, panel: Panel, low: float, high: float) -> None:
    """Set the axis upwards and the title, which tells where the axis is cut."""
    # nothing is cut where a value is not above 0, of which there is no multiple
    title, top = panel.title, panel.most * low if low > 0 else math.inf
    if panel.logarithmic:
        ticker = require("matplotlib.ticker", "plot")
        axes.set_yscale("log")
        subs = (1, 2, 5) if min(high, top) > _WIDE * low else (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=subs))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    if high > top:
        axes.set_ylim(0.97 * low, top)
        title += f" (above {top:.3g} cut off)"
    axes.set_title(title)
