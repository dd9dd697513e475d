"""Plots as SVG by matplotlib, in the colors of the page's style sheet, light and dark."""

import html
import io
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from hyptrans.support.errors import clean
from probing.report.data import ModelResult
from probing.report.svg import spread, text_width

COLORS = 6
"""Colors of encoders in the style sheet; more models repeat them with other marks."""
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_NAMES = ("text", "soft", "rule", "faint", "page", *(f"m{i}" for i in range(COLORS)))
_INK = {name: f"#{16 + i:02x}{16 + i:02x}{16 + i:02x}" for i, name in enumerate(_NAMES)}
"""What stands in matplotlib's picture for a color that the style sheet names."""
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 12,
    "text.parse_math": False,
    "text.color": _INK["text"],
    "axes.labelcolor": _INK["soft"],
    "axes.edgecolor": _INK["rule"],
    "xtick.labelcolor": _INK["soft"],
    "ytick.labelcolor": _INK["soft"],
}
_LEFT, _RIGHT, _TOP, _BOTTOM, _INSET = 44, 306, 34, 42, 0.2
"""Margins in pixels, but the right one: where the plot ends. At the sides, in numbers across."""
_SIZE = 13.0
"""Of the names at the ends of lines."""
_MOST_PLACES = 13
FEW = 5
"""Below that many numbers of a group, each is a dot."""
_CLASS = "class-"
"""Before the classes of an element, in the id that matplotlib writes."""


@dataclass(frozen=True)
class Look:
    """How a model is drawn, the same in every chart: a color of the style sheet and a form."""

    color: str
    mark: str | None
    dashes: str = "-"
    hollow: bool = False


def looks(models: Sequence[ModelResult]) -> dict[str, Look]:
    """A look for each model: a color for each encoder, a form for each role."""
    numbers = {m.name: i for i, m in enumerate(m for m in models if m.role == "encoder")}
    found = {}
    for model in models:
        number = numbers.get(model.of or model.name)
        if number is None:
            found[model.name] = Look("soft", None, "--")
        else:
            fresh = model.role == "fresh"
            color = f"m{number % COLORS}"
            found[model.name] = Look(color, mark(number), "--" if fresh else "-", fresh)
    return found


def mark(index: int) -> str:
    """One of the marks, so that color is not all that tells lines apart."""
    return _MARKS[index % len(_MARKS)]


@dataclass(frozen=True)
class Line:
    """One line in a chart.

    Attributes:
        name: stands at its end.
        look: of its model.
        values: along the axis across; the one value of a line that runs across the plot.
        rings: places that a ring marks.
        spread: standard deviations of the values, or nothing.
        flat: it runs across the plot.
    """

    name: str
    look: Look
    values: Sequence[float]
    rings: Collection[int] = ()
    spread: Sequence[float] = ()
    flat: bool = False

    @property
    def places(self) -> list[int]:
        """Where there is a value."""
        return [place for place, value in enumerate(self.values) if math.isfinite(value)]

    def ends(self, place: int) -> tuple[float, float]:
        """A value less and more its deviation, if that is a number."""
        value, deviation = self.values[place], self.spread[place] if self.spread else 0.0
        deviation = deviation if math.isfinite(deviation) else 0.0
        return value - deviation, value + deviation

    @property
    def reach(self) -> list[float]:
        """Both ends of all values."""
        return [end for place in self.places for end in self.ends(place)]


@dataclass(frozen=True)
class Plot:
    """A plot to draw.

    Attributes:
        title: stands over the axis upwards.
        across: name of the other axis.
        label: what a screen reader says.
        names: of the places across, if they are not numbered from 0.
        reach: what the axis upwards has to show, if not the lines alone.
        beside: stands behind the title, what goes upwards.
    """

    title: str
    across: str
    label: str
    names: Sequence[str] = ()
    reach: Sequence[float] = ()
    beside: str = ""

    def of_lines(self, every: Sequence[Line]) -> Markup:
        """Lines, at least one of them not flat; the first lies on top."""
        last = max(len(line.values) for line in every) - 1
        room = max(text_width(line.name, _SIZE, bold=True) for line in every)
        height = max(230.0, 16.0 * len(every) + 70)
        reach = self.reach or [end for line in every for end in line.reach]
        with mpl.rc_context(_STYLE):
            figure, axes = self._frame(_RIGHT + 22 + room, height, _RIGHT, last, reach)
            for line in reversed(every):
                _draw(axes, line)
            _name_ends(axes, every, last)
            return self._svg(figure)

    def of_boxes(
        self,
        groups: Mapping[int, Sequence[float]],
        look: Look,
        last: int,
        target: Callable[[float], float] | None,
    ) -> Markup:
        """Median, quartiles and 5 to 95 % of each group, or its numbers where they are few.

        Args:
            groups: numbers by their place across, at least one.
            look: of the model.
            last: the greatest place.
            target: the curve that a probe's loss asks for.
        """
        ink = _INK[look.color]
        with mpl.rc_context(_STYLE):
            figure, axes = self._frame(400, 270, 392, last, self.reach)
            few = [(place, n) for place, some in groups.items() if len(some) < FEW for n in some]
            axes.plot(*zip(*few, strict=True), "o", ms=6, color=ink, alpha=0.75) if few else None
            large = {place: some for place, some in groups.items() if len(some) >= FEW}
            face = "none" if look.hollow else to_rgba(ink, 0.28)
            axes.boxplot(
                large.values(),
                positions=list(large),
                whis=(5, 95),
                showfliers=False,
                showcaps=False,
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": face, "edgecolor": ink, "linestyle": look.dashes, "lw": 1.3},
                whiskerprops={"color": ink, "lw": 1.3},
                medianprops={"color": ink, "lw": 3},
            )
            if target:
                # close together at the root, where the curve is steep
                depths = last * np.linspace(0, 1, 61) ** 2
                axes.plot(depths, [target(d) for d in depths], ":", c=_INK["text"], lw=1.4)
            return self._svg(figure)

    def _frame(
        self, width: float, height: float, right: float, last: int, reach: Sequence[float]
    ) -> tuple[Figure, Any]:
        """An empty plot of so many pixels with its axes."""
        # 72 points are an inch, and a point is a pixel
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        sizes = ((right - _LEFT) / width, (height - _TOP - _BOTTOM) / height)
        axes: Any = figure.add_axes((_LEFT / width, _BOTTOM / height, *sizes), facecolor="none")
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(min(reach), max(reach))
        inset = _INSET * max(last, 1) / 4 + 0.1
        axes.set(xlim=(-inset, last + inset), ylim=(ticks[0], ticks[-1]), yticks=ticks)
        if self.names:
            axes.set_xticks(range(last + 1), self.names)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(_MOST_PLACES, integer=True))
        axes.set_xlabel(self.across)
        axes.grid(axis="y", color=_INK["faint"], lw=1)
        axes.tick_params(length=0, pad=6)
        for tick in axes.get_yticklabels():
            tick.set_gid("class-tick")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        titled = {"xycoords": "figure points", "annotation_clip": False}
        axes.annotate(self.title, (2, height - 16), weight="bold", size=14, **titled)
        beside = 10 + text_width(self.title, 14, bold=True)
        axes.annotate(self.beside, (beside, height - 16), color=_INK["soft"], **titled)
        return figure, axes

    def _svg(self, figure: Figure) -> Markup:
        """The picture for a page, whose style sheet colors it."""
        label, written = clean(self.label), io.StringIO()
        for text in figure.findobj(Text):
            text.set_text(clean(text.get_text()))
        # ids of shapes then differ from those of other pictures
        with mpl.rc_context({"svg.hashsalt": label}):
            figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        body = written.getvalue().partition("<svg")[2].partition(">")[2]
        body = re.sub("<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
        # texts have no brackets of their own: they are escaped
        body = re.sub("<[^>]*>", lambda tag: _for_page(tag[0]), body)
        width, height = (72 * side for side in figure.get_size_inches())
        opening = f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        opening += f' height="{height:.0f}" role="img" aria-label="{html.escape(label)}">'
        return Markup(opening + body)


def _for_page(tag: str) -> str:
    """A tag in the colors of the page, with classes, and with no id but those of shapes."""
    for name, ink in _INK.items():
        tag = tag.replace(ink, f"var(--{name})")
    tag = re.sub(rf' id="{_CLASS}([^"]*)"', r' class="\1"', tag)
    return re.sub(r' id="[\w.]+_\d+"', "", tag)


def _draw(axes: Any, line: Line) -> None:
    """A model over its layers, its chosen layers ringed, or a line across the plot."""
    ink, look = _INK[line.look.color], line.look
    if line.flat:
        axes.axhline(line.values[0], color=ink, lw=1.4, ls="--")
        return
    inside = _INK["page"] if look.hollow else ink
    edge = ink if look.hollow else _INK["page"]
    axes.plot(line.values, color=ink, lw=2, ls=look.dashes, zorder=3, gid="class-line")
    for place in line.places:
        if line.spread and math.isfinite(line.spread[place]):
            axes.vlines(place, *line.ends(place), color=ink, lw=1.3, zorder=3, gid="class-whisker")
        shape = {"mfc": inside, "mec": edge, "ms": 8, "zorder": 4, "clip_on": False}
        axes.plot([place], [line.values[place]], look.mark, mew=1.2, **shape)
        if place in line.rings:
            shape = {"mfc": "none", "mec": ink, "ms": 17, "zorder": 5, "clip_on": False}
            axes.plot([place], [line.values[place]], "o", mew=1.6, gid="class-chosen", **shape)


def _name_ends(axes: Any, every: Sequence[Line], last: int) -> None:
    """Write names to the right of the ends of lines, moved apart where they would touch."""
    height = axes.get_window_extent().height
    low, high = axes.get_ylim()
    ends = [line.values[line.places[-1]] for line in every]
    wanted = [height * (end - low) / (high - low) for end in ends]
    # from the top, so that of lines with one end the first is the highest
    depths = spread([height - one for one in wanted], 16, -4, height + 8)
    for line, end, depth in zip(every, ends, depths, strict=True):
        place = axes.get_xlim()[1] if line.flat else line.places[-1]
        ink = _INK[line.look.color]
        axes.annotate(
            line.name,
            (place, end),
            (_RIGHT - _LEFT + 20, height - depth),
            textcoords="axes points",
            color=ink,
            size=_SIZE,
            weight="normal" if line.look.hollow or line.flat else "bold",
            va="center",
            gid="class-of",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": ink,
                "lw": 0.8,
                "alpha": 0.6,
                "shrinkB": 6,
                "relpos": (0, 0.5),
            },
        )
