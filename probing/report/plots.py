"""Plots as SVG by matplotlib, in the colors of the page's style sheet, light and dark."""

import html
import io
import math
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hyptrans.support.errors import clean
from probing.report.data import ModelResult
from probing.report.svg import spread, text_width

if TYPE_CHECKING:
    from probing.report.charts import Box

Range = tuple[float, float]
ANY, SHARE, LENGTH = (-math.inf, math.inf), (0.0, 1.0), (0.0, math.inf)
"""What numbers can be: deviations are drawn no further."""
COLORS = 6
"""Colors of encoders in the style sheet; more models repeat them with other marks."""
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_NAMES = ("text", "soft", "rule", "faint", "page", *(f"m{i}" for i in range(COLORS)))
_INK = {name: f"#{16 + i:02x}{16 + i:02x}{16 + i:02x}" for i, name in enumerate(_NAMES)}
"""What stands in matplotlib's picture for a color that the style sheet names."""
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "hyptrans", "font.size": 12}
_LEFT, _RIGHT, _TOP, _BOTTOM, _INSET = 44, 306, 34, 42, 0.2
"""Margins in pixels, but the right one: where the plot ends. At the sides, in numbers across."""
_SIZE = 13.0
"""Of the names at the ends of lines."""
_MOST_PLACES = 13
_CLASS = "class-"
"""Before the classes of an element, in the id that matplotlib writes."""


@dataclass(frozen=True)
class Look:
    """How a model is drawn, the same in every chart: a color of the style sheet and a form."""

    color: str
    mark: str | None
    dashes: str = "-"
    hollow: bool = False

    def with_form(self, mark: str, dashes: str) -> "Look":
        """The same color with another mark and line."""
        return replace(self, mark=mark, dashes=dashes)


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
            dashes = "--" if fresh else "-"
            found[model.name] = Look(f"m{number % COLORS}", mark(number), dashes, fresh)
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
        within: what the values can be.
        flat: it runs across the plot.
    """

    name: str
    look: Look
    values: Sequence[float]
    rings: Collection[int] = ()
    spread: Sequence[float] = ()
    within: Range = ANY
    flat: bool = False

    @property
    def places(self) -> list[int]:
        """Where there is a value."""
        return [place for place, value in enumerate(self.values) if math.isfinite(value)]

    def ends(self, place: int) -> Range:
        """A value less and more its deviation, if that is a number, as far as there can be one."""
        value = self.values[place]
        deviation = self.spread[place] if self.spread else math.nan
        more = deviation if math.isfinite(deviation) else 0.0
        low, high = self.within
        return max(value - more, min(low, value)), min(value + more, max(high, value))

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
            return self._svg(figure, axes)

    def of_boxes(
        self,
        found: Sequence["Box"],
        look: Look,
        last: int,
        target: Callable[[float], float] | None,
    ) -> Markup:
        """Median, quartiles and 5 to 95 % of numbers, or the numbers where they are few.

        Args:
            found: at least one box.
            look: of the model.
            last: the greatest depth.
            target: the curve that a probe's loss asks for.
        """
        ink, half = _INK[look.color], 0.25
        with mpl.rc_context(_STYLE):
            figure, axes = self._frame(400, 270, 392, last, self.reach)
            for box in found:
                q5, q25, q50, q75, q95 = box.quantiles
                if box.few:
                    axes.plot([box.depth] * len(box.few), box.few, "o", ms=6, color=ink, alpha=0.75)
                    continue
                axes.vlines(box.depth, q5, q95, color=ink, lw=1.3, gid="class-whisker")
                shape = {"facecolor": "none" if look.hollow else ink, "edgecolor": "none"}
                axes.bar(box.depth, q75 - q25, 2 * half, q25, alpha=0.28, **shape)
                shape = {"facecolor": "none", "edgecolor": ink, "linestyle": look.dashes}
                axes.bar(box.depth, q75 - q25, 2 * half, q25, lw=1.3, **shape)
                axes.hlines(q50, box.depth - half, box.depth + half, color=ink, lw=3)
            if target:
                # close together at the root, where the curve is steep
                depths = last * np.linspace(0, 1, 61) ** 2
                axes.plot(depths, [target(d) for d in depths], ":", c=_INK["text"], lw=1.4)
            return self._svg(figure, axes)

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
        shown = range(0, last + 1, max(1, math.ceil((last + 1) / _MOST_PLACES)))
        axes.set_xticks(shown, [self.names[i] if self.names else str(i) for i in shown])
        axes.set_xlabel(self.across, color=_INK["soft"])
        axes.grid(axis="y", color=_INK["faint"], lw=1)
        axes.tick_params(length=0, pad=6, labelcolor=_INK["soft"])
        for tick in axes.get_yticklabels():
            tick.set_gid("class-tick")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.spines["left"].set(color=_INK["rule"])
        titled = {"xycoords": "figure points", "annotation_clip": False}
        axes.annotate(self.title, (2, height - 16), weight="bold", size=14, **titled)
        beside = 10 + text_width(self.title, 14, bold=True)
        axes.annotate(self.beside, (beside, height - 16), color=_INK["soft"], **titled)
        if ticks[0] > 0:
            # two strokes: the axis does not begin at 0
            foot = {"xycoords": "axes points", "textcoords": "axes points"}
            ends = {"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0}
            for y in (5, 9):
                stroke = {"color": _INK["text"], "lw": 1.6, "gid": "class-cut"} | ends
                axes.annotate("", (-4, y - 2), (4, y + 2), arrowprops=stroke, **foot)
        return figure, axes

    def _svg(self, figure: Figure, axes: Any) -> Markup:
        """The picture for a page, whose style sheet colors it."""
        low = axes.get_ylim()[0]
        label = clean(f"{self.label}; the axis begins at {low:.4g}" if low > 0 else self.label)
        for text in figure.findobj(mpl.text.Text):
            text.set_parse_math(False)
            text.set_text(clean(text.get_text()))
            if text.get_color() == "black":
                text.set_color(_INK["text"])
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        body = written.getvalue().partition("<svg")[2].partition(">")[2]
        body = re.sub("<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
        key = f"{zlib.crc32(label.encode()):08x}"
        used = set(re.findall(r'(?:href="|url\()#(\w+)', body))
        # texts have no brackets of their own: they are escaped
        body = re.sub("<[^>]*>", lambda tag: _for_page(tag[0], used, key), body)
        width, height = (72 * side for side in figure.get_size_inches())
        opening = f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        opening += f' height="{height:.0f}" role="img" aria-label="{html.escape(label)}">'
        return Markup(opening + body)


def _for_page(tag: str, used: set[str], key: str) -> str:
    """A tag in colors and letters of the page, with classes, and ids that no other element has."""

    def own(found: re.Match[str]) -> str:
        if found[1] not in used:
            return ""
        # matplotlib defines a mark again for each line of it
        used.remove(found[1])
        return f' id="{found[1]}-{key}"'

    for name, ink in _INK.items():
        tag = tag.replace(ink, f"var(--{name})")
    tag = re.sub(r"font-family: [^;\"]*", "font-family: var(--letters)", tag)
    tag = re.sub(r"font: ([\w ]*?)([\d.]+px) [^;\"]*", r"font: \1\2 var(--letters)", tag)
    tag = re.sub(rf' id="{_CLASS}([^"]*)"', r' class="\1"', tag)
    tag = re.sub(r' id="([^"]*)"', own, tag)
    return re.sub(r'(href="|url\()#(\w+)', rf"\1#\2-{key}", tag)


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
