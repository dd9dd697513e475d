"""The charts of the page, each with the numbers behind it."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from probing.geometry.layers import HEADER, cells
from probing.report import lines, svg
from probing.report.data import ModelResult, RankPoint, Report
from probing.report.lines import Line
from probing.report.results import TITLES, cell
from probing.settings import KINDS

NOTHING = "\N{EN DASH}"
"""Printed for a number that does not exist."""
OF_DISTANCE = ("uuas", "dspr")
RANKED = "uuas"
"""The metric of rank curves."""
FEW = 5  # below that many words of a depth, each is a dot
TARGETS: dict[str, Callable[[float], float]] = {
    # where each loss is zero: |p|_L^2 = 2 cosh(r) - 2 and r^2, with curvature -1
    "lorentz": lambda depth: math.acosh(1 + depth / 2),
    "poincare": math.sqrt,
}


def figure_number(value: float | None, decimals: int = 2) -> str:
    """A number with fixed decimals, or a dash for None, NaN and infinities."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:.{decimals}f}"


@dataclass(frozen=True)
class Chart:
    """A chart and the numbers behind it.

    Attributes:
        name: of what is drawn.
        picture: as HTML that is escaped already.
        columns: heads of the columns that vary from chart to chart.
        rows: of the table, as its template takes them.
    """

    name: str
    picture: Markup
    columns: Sequence[int | str]
    rows: Sequence[tuple[Any, ...]]


def markup(picture: svg.Element) -> Markup:
    """A picture as HTML that is escaped already."""
    return Markup(svg.render(picture))


def in_order(report: Report, names: Iterable[str]) -> list[str]:
    """Names of models in the order of the report, those that it does not know last."""
    order = {model.name: place for place, model in enumerate(report.models)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


def layer_charts(report: Report) -> list[Chart]:
    """One for each metric that has numbers of layers: its course over the layers of each model."""
    made = []
    for metric, title in TITLES.items():
        every = layer_lines(report.models, metric)
        layered = [line for line in every if not line.flat]
        if not layered:
            continue
        label = f"{title} over the layers of each model; the numbers are in the table below"
        chart = Chart(
            title,
            markup(lines.plot(every, title, "layer", label)),
            range(max(len(line.values) for line in layered)),
            [
                (line.name, [figure_number(value, 3) for value in line.values], line.rings)
                for line in layered
            ],
        )
        made.append(chart)
    return made


def layer_lines(models: Sequence[ModelResult], metric: str) -> list[Line]:
    """The lines of one metric over layers: of all that has a number."""
    made, shown = [], lines.looks(models)
    task = 0 if metric in OF_DISTANCE else 1
    for model in models:
        look, flat = shown[model.name], not model.layers
        values = [one.get(metric, math.nan) for one in model.layers or [model.test]]
        rings = frozenset(pair[task] for pair in model.chosen_layers)
        if any(map(math.isfinite, values)):
            made.append(Line(model.name, look.kind, look.mark, values, rings, flat=flat))
    return made


def rank_charts(report: Report) -> list[Chart]:
    """One for each encoder that has rank curves: UUAS against the dimensions of a probe's space."""
    points = sorted(report.ranks, key=lambda point: point.dimensions)
    names = dict.fromkeys(point.model for point in report.ranks)
    drawn = {
        name: rank_lines([point for point in points if point.model == name], report.models)
        for name in names
    }
    # all encoders on one
    ticks, made = lines.axis([line for own in drawn.values() for line in own]), []
    for name in names if ticks else ():
        own = [point for point in points if point.model == name]
        dimensions = list(dict.fromkeys(point.dimensions for point in own))
        label = (
            f"{TITLES[RANKED]} against the dimensions of the probe, {name}; the numbers are in the "
            "table below"
        )
        picture = lines.plot(
            drawn[name],
            f"{TITLES[RANKED]}, {name}",
            "dimensions of the probe\u2019s space",
            label,
            names=list(map(str, dimensions)),
            ticks=ticks,
        )
        rows = [
            (probe, [cell(point, RANKED) for point in own if point.probe == probe])
            for probe in dict.fromkeys(point.probe for point in report.ranks)
        ]
        made.append(Chart(name, markup(picture), dimensions, rows))
    return made


def rank_lines(points: Sequence[RankPoint], models: Sequence[ModelResult]) -> list[Line]:
    """A line for each kind of probe of one encoder, in its color, and one for each baseline."""
    made = []
    for number, probe in enumerate(KINDS):
        own = [point for point in points if point.probe == probe]
        if own:
            kind = f"{lines.looks(models)[own[0].model].kind} {probe}"
            values, spread = (
                [figures.get(RANKED, math.nan) for figures in several]
                for several in ([point.test for point in own], [point.spread for point in own])
            )
            mark = lines.mark(number)
            made.append(Line(probe, kind, mark, values, spread=spread, within=lines.SHARE))
    for model in models:
        value = model.test.get(RANKED, math.nan)
        if model.role == "baseline" and not math.isnan(value):
            made.append(Line(model.name, "base", None, [value], flat=True))
    return made


def space_charts(report: Report) -> list[Chart]:
    """One for each encoder: the radius of its states over layers."""
    shown, made = lines.looks(report.models), []
    for name, use in report.spaces.items():
        radii = [layer.radius for layer in use.layers]
        spread = [layer.spread for layer in use.layers]
        look = shown[name]
        line = Line(name, look.kind, look.mark, radii, spread=spread, within=lines.LENGTH)
        label = f"Radius of the states of {name} over layers; the numbers are in the table below"
        chart = Chart(
            name,
            markup(lines.plot([line], "radius", "layer", label)),
            HEADER,
            [tuple(cells(layer)) for layer in use.layers],
        )
        made.append(chart)
    return made


@dataclass(frozen=True)
class Box:
    """The radii of the words of one gold depth."""

    depth: int
    count: int
    quantiles: tuple[float, float, float, float, float]
    """5, 25, 50, 75 and 95 %."""
    few: tuple[float, ...]
    """The radii themselves where they are fewer than :data:`FEW`."""


def boxes(sample: Sequence[tuple[int, float]]) -> list[Box]:
    """Summaries by gold depth, shallow first; radii that are not finite are left out."""
    groups = defaultdict(list)
    for depth, radius in sample:
        if math.isfinite(radius):
            groups[depth].append(radius)
    made = []
    for depth, radii in sorted(groups.items()):
        q5, q25, q50, q75, q95 = np.quantile(radii, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
        few = tuple(radii) if len(radii) < FEW else ()
        made.append(Box(depth, len(radii), (q5, q25, q50, q75, q95), few))
    return made


def radius_charts(report: Report) -> list[Chart]:
    """One for each model with radii, all on the same axes."""
    found = {name: boxes(sample) for name, sample in report.radii.items()}
    found = {name: groups for name, groups in found.items() if groups}
    every = [box for groups in found.values() for box in groups]
    top = max((max((*box.few, box.quantiles[-1])) for box in every), default=0.0)
    last = max((box.depth for box in every), default=0)
    shown, probes = lines.looks(report.models), {m.name: m.probe for m in report.models}
    made = []
    for name in in_order(report, found):
        kind = shown[name].kind if name in shown else "base"
        picture = _radii(name, kind, probes.get(name, ""), found[name], max(top, 1e-6), last)
        chart = Chart(
            name,
            markup(picture),
            (),
            [
                (box.depth, box.count, [figure_number(value) for value in box.quantiles])
                for box in found[name]
            ],
        )
        made.append(chart)
    return made


def _radii(
    model: str, kind: str, probe: str, found: list[Box], top: float, last: int
) -> svg.Element:
    """Depth in the gold tree against hyperbolic radius.

    Args:
        model: its name.
        kind: classes of its color and form.
        probe: kind of its probe; the radii that the loss of a known one asks for are drawn.
        found: what to draw, at least one.
        top: the upper end of the axis of radii, common to all models.
        last: the greatest depth, common to all models.
    """
    label = f"Hyperbolic radius by gold depth, {model}; the numbers are in the table below"
    picture = svg.figure(400, 270, label, "chart")
    upwards = svg.along(svg.ticks(0, top))
    frame = svg.Frame(42, 392, 34, 228, svg.places(last), upwards, inset=16)
    svg.add(picture, "text", "title", model, x=2, y=16)
    frame.draw(picture, "depth in the gold tree")
    beside = 10 + svg.text_width(model, 14, bold=True)
    svg.add(picture, "text", "tick start", "radius", x=beside, y=16)
    half = min(9.0, 0.32 * (frame.x(1) - frame.x(0)) if last else 9.0)
    for box in found:
        x, (q5, q25, q50, q75, q95) = frame.x(box.depth), map(frame.y, box.quantiles)
        for radius in box.few:
            svg.add(picture, "circle", f"few {kind}", cx=x, cy=frame.y(radius), r=3)
        if box.few:
            continue
        svg.add(picture, "path", f"whisker {kind}", d=f"M{svg.points(x, q5)}V{svg.number(q95)}")
        size = {"width": 2 * half, "height": max(q25 - q75, 1)}
        svg.add(picture, "rect", f"box {kind}", x=x - half, y=q75, **size)
        svg.add(picture, "path", f"median {kind}", d=f"M{svg.points(x - half, q50)}h{2 * half:.1f}")
    if probe in TARGETS:
        # close together at the root, where the curve is steep
        depths = [last * (step / 60) ** 2 for step in range(61)]
        wanted = [(depth, TARGETS[probe](depth)) for depth in depths]
        inside = [(frame.x(d), frame.y(r)) for d, r in wanted if r <= upwards.high]
        svg.add(picture, "path", "target", d=svg.line(inside))
    return picture
