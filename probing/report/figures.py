"""What the page shows of a report: pictures, their captions and the numbers behind them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from hyptrans.support import svg
from probing.geometry.table import HEADER, cells
from probing.probes.metrics import METRICS
from probing.report import arcs, curves, disk, layout, looks, radii, ranks
from probing.report.data import Edge, Example, Prediction, Report
from probing.report.results import TITLES, cell

NOTHING = "\N{EN DASH}"
"""Printed for a number that does not exist."""


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
        svg: the picture, as HTML that is escaped already.
        caption: what a screen reader says of the picture.
        region: what it calls the place of the numbers.
        title: what it calls their table.
        columns: heads of the columns that vary from chart to chart.
        rows: of the table, as its template takes them.
    """

    name: str
    svg: Markup
    caption: str
    region: str
    title: str
    columns: Sequence[int | str]
    rows: Sequence[tuple[Any, ...]]


def picture(element: svg.Element) -> Markup:
    """A picture as HTML that is escaped already."""
    return Markup(svg.render(element))


def layer_figures(report: Report) -> list[Chart]:
    """One chart for each metric that has numbers, with the numbers of every layer."""
    made = []
    for metric in METRICS:
        drawn = curves.draw(report.models, metric)
        if drawn is None:
            continue
        every = [line for line in curves.lines(report.models, metric) if not line.flat]
        title = TITLES[metric]
        made.append(
            Chart(
                name=title,
                svg=picture(drawn),
                caption=f"{title} over layers",
                region=f"{title} of every layer",
                title=f"{title} of every layer on the development set; the chosen one is bold",
                columns=range(max(len(line.values) for line in every)),
                rows=[
                    (line.name, [figure_number(value, 3) for value in line.values], line.rings)
                    for line in every
                ],
            )
        )
    return made


def radius_figures(report: Report) -> list[Chart]:
    """One chart for each model with radii, all on the same axes."""
    found = {name: radii.boxes(sample) for name, sample in report.radii.items()}
    found = {name: boxes for name, boxes in found.items() if boxes}
    if not found:
        return []
    every = [box for boxes in found.values() for box in boxes]
    top = max(max((*box.few, box.quantiles[-1])) for box in every)
    last = max(box.depth for box in every)
    shown, probes = looks.looks(report.models), {m.name: m.probe for m in report.models}
    made = []
    for name in _in_order(report, found):
        kind = shown[name].kind if name in shown else "base"
        drawn = radii.draw(name, kind, probes.get(name, ""), found[name], max(top, 1e-6), last)
        made.append(
            Chart(
                name=name,
                svg=picture(drawn),
                caption=f"Radius by depth, {name}",
                region=f"Radius by depth, {name}",
                title=f"Hyperbolic radius by gold depth, {name}",
                columns=(),
                rows=[
                    (box.depth, box.count, [figure_number(value) for value in box.quantiles])
                    for box in found[name]
                ],
            )
        )
    return made


def rank_figures(report: Report) -> list[Chart]:
    """One chart for each encoder that has rank curves, with the numbers behind it."""
    axis, made = ranks.axis_of(report.ranks, report.models), []
    for name in dict.fromkeys(point.model for point in report.ranks) if axis else ():
        points = [point for point in report.ranks if point.model == name]
        drawn = ranks.draw(name, points, report.models, axis)
        made.append(
            Chart(
                name=name,
                svg=picture(drawn),
                caption=f"UUAS over dimensions, {name}",
                region=f"UUAS by dimensions, {name}",
                title=f"UUAS on the test set by probe and dimensions, {name}",
                columns=list(dict.fromkeys(point.dimensions for point in points)),
                rows=[
                    (probe, [cell(point, ranks.METRIC) for point in points if point.probe == probe])
                    for probe in dict.fromkeys(point.probe for point in points)
                ],
            )
        )
    return made


def space_figures(report: Report) -> list[Chart]:
    """One chart for each encoder: the radius of its states over layers."""
    shown, made = looks.looks(report.models), []
    for name, use in report.spaces.items():
        look = shown[name]
        line = curves.Line(
            name,
            look.kind,
            look.mark,
            [layer.radius for layer in use.layers],
            spread=[layer.spread for layer in use.layers],
            within=curves.LENGTH,
        )
        label = f"Radius of the states of {name} over layers; the numbers are in the table below"
        made.append(
            Chart(
                name=name,
                svg=picture(curves.plot([line], "radius", "layer", label)),
                caption=f"Radius over layers, {name}",
                region=f"Use of the space, {name}",
                title=f"Figures of every layer, {name}",
                columns=HEADER,
                rows=[tuple(cells(layer)) for layer in use.layers],
            )
        )
    return made


def example_figures(report: Report) -> Iterator[dict[str, Any]]:
    """The trees and disks of each sentence, one for each model that predicts it."""
    for example in report.examples:
        models = [
            _one(example, name, example.predictions[name])
            for name in _in_order(report, example.predictions)
        ]
        yield {"words": example.words, "text": " ".join(example.words), "models": models}


def model_names(report: Report) -> list[str]:
    """The models that predict some sentence, in the order of the report."""
    names = {name for example in report.examples for name in example.predictions}
    return _in_order(report, sorted(names))


def _in_order(report: Report, names: Iterable[str]) -> list[str]:
    """Names of models in the order of the report, those that it does not know last."""
    order = {model.name: place for place, model in enumerate(report.models)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


def heads(edges: list[Edge], root: int, count: int) -> list[int | None]:
    """The head of each word once the tree hangs from ``root``: -1 there, None out of the tree."""
    found: list[int | None] = [None] * count
    if not 0 <= root < count:
        return found
    found[root] = -1
    waiting = [root]
    while waiting:
        word = waiting.pop()
        for edge in edges:
            if word in edge:
                other = edge[0] + edge[1] - word
                if found[other] is None:
                    found[other] = word
                    waiting.append(other)
    return found


def _one(example: Example, name: str, prediction: Prediction) -> dict[str, Any]:
    """The figures of one sentence and one model."""
    laid = disk.lay_out(example, prediction)
    return {
        "name": name,
        "score": arcs.score(example, prediction).words,
        "tree": picture(arcs.draw(example, prediction, name)),
        "table": _word_table(example, prediction, laid),
        "disk": picture(disk.draw(example, prediction, name, laid)) if laid else None,
        "note": _disk_note(example, prediction, laid) if laid else "",
    }


def _word_table(
    example: Example, prediction: Prediction, laid: layout.Disk | None
) -> list[tuple[str, ...]]:
    """A row for each word: its gold and predicted head and depth, and its radius in the disk."""
    count = len(example.words)
    gold = heads(example.gold_edges, example.gold_root, count)
    predicted = heads(prediction.edges, prediction.root, count)

    def named(head: int | None) -> str:
        if head is None:
            return NOTHING
        return "root" if head < 0 else f"{example.words[head]} ({head + 1})"

    table: list[tuple[str, ...]] = []
    for word in range(count):
        depth = prediction.depths[word] if word < len(prediction.depths) else None
        radius = float(laid.radii[word]) if laid else None
        gold_cells = named(gold[word]), str(example.gold_depths[word])
        cells = named(predicted[word]), figure_number(depth), figure_number(radius)
        table.append((f"{example.words[word]} ({word + 1})", *gold_cells, *cells))
    return table


def _disk_note(example: Example, prediction: Prediction, laid: layout.Disk) -> str:
    """What the picture of the disk does to the probe's points."""
    at_root = 0 <= prediction.root < len(example.words)
    center = (
        f"“{example.words[prediction.root]}”" if at_root else "the origin, as no root is predicted"
    )
    note = f"Center: {center}."
    if math.isfinite(laid.agreement):
        note += (
            " How well two dimensions keep the order of the probe's own distances between words: "
            f"{laid.agreement:.2f} (Spearman's rank correlation; 1 would be the same order)."
        )
    if abs(laid.scale - 1) > 1e-9:
        note += f" Radii are drawn {laid.scale:.2g} times their size; the rings tell the true ones."
    return note
