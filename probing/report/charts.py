"""Draw the charts of the page, each with a table of its numbers."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np
from markupsafe import Markup

from probing.geometry.layers import HEADER, cells
from probing.report.data import ModelResult, RankPoint, Report
from probing.report.plots import Line, Plot, looks, mark
from probing.report.results import TITLES, cell
from probing.settings import KINDS

NOTHING = "\N{EN DASH}"
"""Printed for a missing number."""
OF_DISTANCE = ("uuas", "dspr")
RANKED = "uuas"
"""The metric of rank curves."""
TARGETS: dict[str, Callable[[float], float]] = {
    # where each loss is zero: |p|_L^2 = 2 cosh(r) - 2 and r^2, with curvature -1
    "lorentz": lambda depth: math.acosh(1 + depth / 2),
    "poincare": math.sqrt,
}
PERCENTILES = (5, 25, 50, 75, 95)
DASHES = dict(zip(KINDS, ("-", "--", ":"), strict=True))
IN_TABLE = "the numbers are in the table below"


def figure_number(value: float | None, decimals: int = 2) -> str:
    """Format a number with fixed decimals; None, NaN and infinities become a dash."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:.{decimals}f}"


@dataclass(frozen=True)
class Chart:
    """A chart and a table of its numbers.

    Attributes:
        about: what the chart shows.
        picture: the picture as escaped HTML.
        columns: heads of the table's columns.
        rows: rows of the table, each beginning with its head.
    """

    about: str
    picture: Markup
    columns: Sequence[int | str]
    rows: Sequence[Sequence[object]]


def in_order(report: Report, names: Iterable[str]) -> list[str]:
    """Sort names of models in the order of the report; unknown names come last."""
    order = {model.name: place for place, model in enumerate(report.models)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


def layer_charts(report: Report) -> list[Chart]:
    """Draw a chart over the layers of all models for each metric that has numbers of layers."""
    made = []
    for metric, title in TITLES.items():
        every = layer_lines(report.models, metric)
        layered = [line for line in every if not line.flat]
        if not layered:
            continue
        plot = Plot(title, "layer", f"{title} over the layers of each model; {IN_TABLE}")
        about = f"{title} of every layer on the development set; the chosen one is bold"
        head = ("layer", *range(max(len(line.values) for line in layered)))
        rows = [
            (line.name, *map(partial(_layer, line), range(len(line.values)))) for line in layered
        ]
        made.append(Chart(about, plot.of_lines(every), head, rows))
    return made


def _layer(line: Line, layer: int) -> str:
    """Return a cell of a metric's table, bold for a chosen layer."""
    shown = figure_number(line.values[layer], 3)
    return Markup("<strong>{}</strong>").format(shown) if layer in line.rings else shown


def layer_lines(models: Sequence[ModelResult], metric: str) -> list[Line]:
    """Return one metric's line over layers for every model that has a number."""
    made, shown = [], looks(models)
    task = 0 if metric in OF_DISTANCE else 1
    for model in models:
        values = [one.get(metric, math.nan) for one in model.layers or [model.test]]
        rings = frozenset(pair[task] for pair in model.chosen_layers)
        if any(map(math.isfinite, values)):
            flat = not model.layers
            made.append(Line(model.name, shown[model.name], values, rings, flat=flat))
    return made


def rank_charts(report: Report) -> list[Chart]:
    """Draw UUAS against the dimensions of the probe for each encoder that has rank curves."""
    points = sorted(report.ranks, key=lambda point: point.dimensions)
    found = {name: [p for p in points if p.model == name] for name in report.rank_models}
    drawn = {name: rank_lines(own, report.models) for name, own in found.items()}
    # all encoders share one scale
    reach = [end for own in drawn.values() for line in own for end in line.reach]
    made = []
    for name, own in found.items() if reach else ():
        sizes = list(dict.fromkeys(point.dimensions for point in own))
        title, across = f"{TITLES[RANKED]}, {name}", "dimensions of the probe\u2019s space"
        label = f"{TITLES[RANKED]} against the dimensions of the probe, {name}; {IN_TABLE}"
        plot = Plot(title, across, label, names=list(map(str, sizes)), reach=reach)
        rows = [
            (probe, *(cell(point, RANKED) for point in own if point.probe == probe))
            for probe in dict.fromkeys(point.probe for point in report.ranks)
        ]
        about = f"UUAS on the test set by probe and dimensions, {name}"
        made.append(Chart(about, plot.of_lines(drawn[name]), ("probe", *sizes), rows))
    return made


def rank_lines(points: Sequence[RankPoint], models: Sequence[ModelResult]) -> list[Line]:
    """Return a line for each kind of probe of one encoder, in its color, and for each baseline."""
    made, shown = [], looks(models)
    for number, probe in enumerate(KINDS):
        own = [point for point in points if point.probe == probe]
        if own:
            look = replace(shown[own[0].model], mark=mark(number), dashes=DASHES[probe])
            values = [point.test.get(RANKED, math.nan) for point in own]
            spread = [point.spread.get(RANKED, math.nan) for point in own]
            made.append(Line(probe, look, values, spread=spread))
    for model in models:
        value = model.test.get(RANKED, math.nan)
        if model.role == "baseline" and not math.isnan(value):
            made.append(Line(model.name, shown[model.name], [value], flat=True))
    return made


def space_charts(report: Report) -> list[Chart]:
    """Draw the radius of the states over layers for each encoder."""
    shown, made = looks(report.models), []
    for name, layers in report.spaces.items():
        radii, spread = (
            [getattr(one, figure) for one in layers] for figure in ("radius", "spread")
        )
        line = Line(name, shown[name], radii, spread=spread)
        label = f"Radius of the states of {name} over layers; {IN_TABLE}"
        picture = Plot("radius", "layer", label).of_lines([line])
        about = f"Figures of every layer, {name}"
        made.append(Chart(about, picture, HEADER, [cells(layer) for layer in layers]))
    return made


def radius_charts(report: Report) -> list[Chart]:
    """Draw the words' radii by gold depth for each model that has radii, all on the same axes."""
    found = {name: by_depth(report.radii[name]) for name in in_order(report, report.radii)}
    found = {name: groups for name, groups in found.items() if groups}
    reach = [
        0.0,
        *(radius for groups in found.values() for some in groups.values() for radius in some),
    ]
    last = max((depth for groups in found.values() for depth in groups), default=0)
    shown, probes = looks(report.models), {m.name: m.probe for m in report.models}
    head = ("depth", "words", *(f"{p} %" if p != 50 else "median" for p in PERCENTILES))
    made = []
    for name, groups in found.items():
        label = f"Hyperbolic radius by gold depth, {name}; {IN_TABLE}"
        plot = Plot(name, "depth in the gold tree", label, reach=reach, beside="radius")
        picture = plot.of_boxes(groups, shown[name], last, TARGETS.get(probes.get(name, "")))
        rows = [
            (depth, len(radii), *map(figure_number, np.percentile(radii, PERCENTILES)))
            for depth, radii in groups.items()
        ]
        made.append(Chart(f"Hyperbolic radius by gold depth, {name}", picture, head, rows))
    return made


def by_depth(sample: Sequence[tuple[int, float]]) -> dict[int, list[float]]:
    """Group the finite radii by gold depth, shallow first."""
    finite = sorted(pair for pair in sample if math.isfinite(pair[1]))
    return {depth: [r for _, r in group] for depth, group in groupby(finite, itemgetter(0))}
