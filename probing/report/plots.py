"""Draw plots with matplotlib as SVG that takes the colors of the page's style sheet."""

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
"""Encoder colors in the style sheet; further encoders repeat them with other marks."""
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_NAMES = ("text", "soft", "rule", "faint", "page", *(f"m{i}" for i in range(COLORS)))
_INK = {name: f"#{16 + i:02x}{16 + i:02x}{16 + i:02x}" for i, name in enumerate(_NAMES)}
"""Placeholder colors in matplotlib's picture for the style sheet's named colors."""
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
"""Margins in pixels; ``_RIGHT`` is where the plot ends, ``_INSET`` is in units of the x axis."""
_SIZE = 13.0
"""Font size of the names at the ends of lines."""
_MOST_PLACES = 13
FEW = 5
"""Groups of fewer numbers are drawn as dots."""
_CLASS = "class-"
"""Prefix of an element's classes in the id that matplotlib writes."""


@dataclass(frozen=True)
class Look:
    """How every chart draws a model: a color of the style sheet, a mark and a line style."""

    color: str
    mark: str | None
    dashes: str = "-"
    hollow: bool = False


def looks(models: Sequence[ModelResult]) -> dict[str, Look]:
    """Return a look for each model: the color depends on the encoder, the form on the role."""
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
    """Return a mark, so that lines differ in more than color."""
    return _MARKS[index % len(_MARKS)]


@dataclass(frozen=True)
class Line:
    """One line in a chart.

    Attributes:
        name: label at its end.
        look: look of its model.
        values: values along the x axis; a flat line has one value.
        rings: places marked by a ring.
        spread: standard deviations of the values, or empty.
        flat: whether the line runs horizontally across the plot.
    """

    name: str
    look: Look
    values: Sequence[float]
    rings: Collection[int] = ()
    spread: Sequence[float] = ()
    flat: bool = False

    @property
    def places(self) -> list[int]:
        """Return the places with a finite value."""
        return [place for place, value in enumerate(self.values) if math.isfinite(value)]

    def ends(self, place: int) -> tuple[float, float]:
        """Return the value minus and plus its deviation, if that is finite."""
        value, deviation = self.values[place], self.spread[place] if self.spread else 0.0
        deviation = deviation if math.isfinite(deviation) else 0.0
        return value - deviation, value + deviation

    @property
    def reach(self) -> list[float]:
        """Return both ends of all finite values."""
        return [end for place in self.places for end in self.ends(place)]


@dataclass(frozen=True)
class Plot:
    """A plot to draw.

    Attributes:
        title: title above the y axis.
        across: name of the x axis.
        label: text for screen readers.
        names: names of the places on the x axis, if they are not numbered from 0.
        reach: values that the y axis must include, if not those of the lines.
        beside: name of the y axis, after the title.
    """

    title: str
    across: str
    label: str
    names: Sequence[str] = ()
    reach: Sequence[float] = ()
    beside: str = ""

    def of_lines(self, every: Sequence[Line]) -> Markup:
        """Draw lines, at least one of them not flat; the first lies on top."""
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
        """Draw median, quartiles and 5 to 95 % of each group, or dots if it has few numbers.

        Args:
            groups: numbers by place on the x axis, at least one.
            look: look of the model.
            last: the greatest place on the x axis.
            target: curve on which the probe's loss is zero.
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
                # sample densely near the root, where the curve is steep
                depths = last * np.linspace(0, 1, 61) ** 2
                axes.plot(depths, [target(d) for d in depths], ":", c=_INK["text"], lw=1.4)
            return self._svg(figure)

    def _frame(
        self, width: float, height: float, right: float, last: int, reach: Sequence[float]
    ) -> tuple[Figure, Any]:
        """Create an empty plot of the given size in pixels, with its axes."""
        # at 72 dpi, a point is a pixel
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
        """Return the picture as SVG that the page's style sheet colors."""
        label, written = clean(self.label), io.StringIO()
        for text in figure.findobj(Text):
            text.set_text(clean(text.get_text()))
        # the salt makes ids of shapes differ from those of other pictures
        with mpl.rc_context({"svg.hashsalt": label}):
            figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        body = written.getvalue().partition("<svg")[2].partition(">")[2]
        body = re.sub("<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
        # texts are escaped, so every bracket belongs to a tag
        body = re.sub("<[^>]*>", lambda tag: _for_page(tag[0]), body)
        width, height = (72 * side for side in figure.get_size_inches())
        opening = f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        opening += f' height="{height:.0f}" role="img" aria-label="{html.escape(label)}">'
        return Markup(opening + body)


def _for_page(tag: str) -> str:
    """Give a tag the page's colors and its classes, and remove all ids but those of shapes."""
    for name, ink in _INK.items():
        tag = tag.replace(ink, f"var(--{name})")
    tag = re.sub(rf' id="{_CLASS}([^"]*)"', r' class="\1"', tag)
    return re.sub(r' id="[\w.]+_\d+"', "", tag)


def _draw(axes: Any, line: Line) -> None:
    """Draw a line with its marks and rings, or a flat one across the plot."""
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
    """Write names to the right of the lines' ends, moved apart where they would touch."""
    height = axes.get_window_extent().height
    low, high = axes.get_ylim()
    ends = [line.values[line.places[-1]] for line in every]
    wanted = [height * (end - low) / (high - low) for end in ends]
    # measure from the top, so that the first of lines with equal ends is the highest
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
