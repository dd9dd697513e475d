"""Draw the charts over layers with matplotlib, as SVG that takes the style sheet's colors."""

import html
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hyptrans.support.errors import clean
from probing.report.data import ModelResult
from probing.report.results import TITLES, figure

OF_DISTANCE = ("uuas", "dspr")
COLORS = 6
"""Encoder colors in the style sheet; further encoders repeat them with other marks."""
_MARKS = "os^DvPX"
_NAMES = ("text", "soft", "rule", "faint", "page", *(f"m{i}" for i in range(COLORS)))
_INK = {name: f"#{16 + i:02x}{16 + i:02x}{16 + i:02x}" for i, name in enumerate(_NAMES)}
"""Placeholder colors in matplotlib's picture for the style sheet's named colors."""
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 12,
    "axes.labelcolor": _INK["soft"],
    "axes.edgecolor": _INK["rule"],
    "xtick.labelcolor": _INK["soft"],
    "ytick.labelcolor": _INK["soft"],
}
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 400, 250, 44, 34, 42
"""A chart's size and margins in pixels."""
_MOST_PLACES = 13


@dataclass(frozen=True)
class Line:
    """How the charts draw a model: a color of the style sheet, a mark and a line style."""

    color: str
    mark: str | None
    dashes: str = "-"
    hollow: bool = False


@dataclass(frozen=True)
class Chart:
    """A picture of one metric over the layers and a table of its numbers, which has row heads."""

    about: str
    picture: Markup
    columns: Sequence[int | str]
    rows: Sequence[Sequence[object]]


def lines(models: Sequence[ModelResult]) -> dict[str, Line]:
    """Return the line of each model: the color depends on the encoder, the form on the role."""
    numbers = {m.name: i for i, m in enumerate(m for m in models if m.role == "encoder")}
    found = {}
    for model in models:
        number, fresh = numbers.get(model.of or model.name), model.role == "fresh"
        if number is None:
            found[model.name] = Line("soft", None, "--")
        else:
            mark = _MARKS[number % len(_MARKS)]
            found[model.name] = Line(f"m{number % COLORS}", mark, "--" if fresh else "-", fresh)
    return found


def layer_charts(models: Sequence[ModelResult]) -> list[Chart]:
    """Draw a chart over the layers of all models for each metric that has numbers of layers."""
    made = []
    for metric, title in TITLES.items():
        layered = [m for m in models if m.layers and any(map(math.isfinite, _values(m, metric)))]
        if not layered:
            continue
        about = f"{title} of every layer on the development set; the chosen one is bold"
        head = ("layer", *range(max(len(model.layers) for model in layered)))
        rows = [(model.name, *_cells(model, metric)) for model in layered]
        made.append(Chart(about, _draw(models, metric, title), head, rows))
    return made


def key(models: Sequence[ModelResult]) -> list[tuple[str, Markup]]:
    """Return every model's name and a picture of its line."""
    made = []
    for name, line in lines(models).items():
        figure = Figure(figsize=(38 / 72, 14 / 72), dpi=72)
        axes: Any = figure.add_axes((0, 0, 1, 1), xlim=(-1, 1), ylim=(-1, 1))
        axes.set_axis_off()
        axes.plot([-0.9, 0.9], [0, 0], color=_INK[line.color], lw=2, ls=line.dashes)
        _mark(axes, line, 0, 0)
        made.append((name, _svg(figure, "swatch", clean(name))))
    return made


def _values(model: ModelResult, metric: str) -> list[float]:
    """Return a metric of each layer, or that on the test set if there are no layers."""
    return [one.get(metric, math.nan) for one in model.layers or [model.test]]


def _chosen(model: ModelResult, metric: str) -> set[int]:
    return {pair[metric not in OF_DISTANCE] for pair in model.chosen_layers}


def _cells(model: ModelResult, metric: str) -> list[str]:
    """Return a metric of each layer for its table, bold for chosen layers."""
    bold, chosen = Markup("<strong>{}</strong>"), _chosen(model, metric)
    shown = enumerate(map(figure, _values(model, metric)))
    return [bold.format(text) if layer in chosen else text for layer, text in shown]


def _draw(models: Sequence[ModelResult], metric: str, title: str) -> Markup:
    """Draw a line for every model, the first on top; one without layers runs across the plot."""
    found = {model.name: _values(model, metric) for model in models}
    reach = [value for values in found.values() for value in values if math.isfinite(value)]
    last = max(len(values) for values in found.values()) - 1
    with mpl.rc_context(_STYLE):
        figure, axes = _frame(title, last, reach)
        for model in reversed(models):
            line, values = lines(models)[model.name], found[model.name]
            ink = _INK[line.color]
            if not model.layers and not math.isfinite(values[0]):
                continue
            if not model.layers:
                axes.axhline(values[0], color=ink, lw=1.4, ls="--", gid="class-flat")
                continue
            axes.plot(values, color=ink, lw=2, ls=line.dashes, zorder=3, gid="class-line")
            for layer, value in enumerate(values):
                _mark(axes, line, layer, value)
                if layer in _chosen(model, metric):
                    ring = {"mfc": "none", "mec": ink, "ms": 17, "mew": 1.6, "clip_on": False}
                    axes.plot([layer], [value], "o", zorder=5, gid="class-chosen", **ring)
        label = f"{title} over the layers of each model; the numbers are in the table below"
        return _svg(figure, "chart", label)


def _mark(axes: Any, line: Line, x: float, y: float) -> None:
    ink, page = _INK[line.color], _INK["page"]
    face, edge = (page, ink) if line.hollow else (ink, page)
    axes.plot([x], [y], line.mark or "", ms=8, mew=1.2, mfc=face, mec=edge, zorder=4, clip_on=False)


def _frame(title: str, last: int, reach: Sequence[float]) -> tuple[Figure, Any]:
    """Create an empty plot with its axes; the layers go from 0 to ``last``."""
    # at 72 dpi, a point is a pixel
    figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), dpi=72)
    sizes = ((_WIDTH - _LEFT - 8) / _WIDTH, (_HEIGHT - _TOP - _BOTTOM) / _HEIGHT)
    axes: Any = figure.add_axes((_LEFT / _WIDTH, _BOTTOM / _HEIGHT, *sizes), facecolor="none")
    ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(min(reach), max(reach))
    inset = 0.05 * max(last, 1) + 0.1
    axes.set(xlim=(-inset, last + inset), ylim=(ticks[0], ticks[-1]), yticks=ticks, xlabel="layer")
    axes.xaxis.set_major_locator(MaxNLocator(_MOST_PLACES, integer=True))
    axes.grid(axis="y", color=_INK["faint"], lw=1)
    axes.tick_params(length=0, pad=6)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    figure.text(2 / _WIDTH, 1 - 16 / _HEIGHT, title, weight="bold", size=14, color=_INK["text"])
    return figure, axes


def _svg(figure: Figure, kind: str, label: str) -> Markup:
    """Return the picture as SVG that the style sheet colors; its label differs from others'."""
    written = io.StringIO()
    # the salt makes ids of shapes differ from those of other pictures
    with mpl.rc_context({"svg.hashsalt": label}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    body = written.getvalue().partition("<svg")[2].partition(">")[2]
    body = re.sub("<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    # texts are escaped, so every bracket belongs to a tag
    body = re.sub("<[^>]*>", lambda tag: _for_page(tag[0]), body)
    width, height = (72 * side for side in figure.get_size_inches())
    name = f'role="img" aria-label="{html.escape(clean(label))}"'
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return Markup(f'<svg class="{kind}" {size} {name}>{body}')


def _for_page(tag: str) -> str:
    """Give a tag the page's colors, make ``class-…`` its class, keep no other id but of shapes."""
    for name, ink in _INK.items():
        tag = tag.replace(ink, f"var(--{name})")
    tag = re.sub(r' id="class-([^"]*)"', r' class="\1"', tag)
    return re.sub(r' id="[\w.]+_\d+"', "", tag)
