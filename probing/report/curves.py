"""Line charts of the metrics over the layers, one small chart per metric."""

import math
from dataclasses import dataclass

from probing.report import axes, svg
from probing.report.data import ModelResult

TITLES = {"uuas": "UUAS", "dspr": "Dspr.", "root": "Root%", "nspr": "Nspr."}
OF_DISTANCE = ("uuas", "dspr")
SIZE = 13.0


@dataclass(frozen=True)
class Line:
    """One model in a chart."""

    name: str
    kind: str
    """Class of its color; ``base`` for a baseline."""
    mark: int | None
    values: list[float]
    """One per layer, or the one value of a baseline without layers."""
    chosen: int

    @property
    def flat(self) -> bool:
        return self.chosen < 0


def shown(metric: str, value: float) -> float:
    """The value in the unit of its axis: Root is a percentage."""
    return 100 * value if metric == "root" else value


def lines(models: list[ModelResult], metric: str) -> list[Line]:
    """The lines of one chart: of all that has a number."""
    made, number = [], 0
    for model in models:
        kind, mark = ("base", None) if model.baseline else (axes.color(number), number)
        number += not model.baseline
        chosen = model.distance_layer if metric in OF_DISTANCE else model.depth_layer
        found = [one.get(metric, math.nan) for one in model.layers]
        if model.baseline and not found:
            chosen, found = -1, [model.test.get(metric, math.nan)]
        values = [shown(metric, value) for value in found]
        if any(math.isfinite(value) for value in values):
            made.append(Line(model.name, kind, mark, values, chosen))
    return made


def draw(models: list[ModelResult], metric: str) -> svg.Element | None:
    """The chart of one metric; None where no model has a number for any layer."""
    every = lines(models, metric)
    if all(line.flat for line in every):
        return None
    values = [value for line in every for value in line.values if math.isfinite(value)]
    last = max(len(line.values) for line in every) - 1
    room = max(svg.text_width(line.name, SIZE) for line in every)
    height = max(230.0, 16.0 * len(every) + 70)
    axis = axes.ticks(min(values), max(values))
    frame = axes.Frame(44, 306, 34, height - 42, last, axis)
    label = f"{TITLES[metric]} over the layers of each model; the numbers are in the table below"
    picture = svg.figure(frame.right + 22 + room, height, label, "chart")
    frame.draw(picture, "layer", TITLES[metric])
    # the first model lies on top
    for line in reversed(every):
        _line(picture, frame, line)
    _names(picture, frame, every)
    return picture


def _line(picture: svg.Element, frame: axes.Frame, line: Line) -> None:
    """A model over its layers, its chosen layer ringed, or a baseline across the plot."""
    if line.flat:
        y = frame.y(line.values[0])
        path = f"M{svg.points(frame.left, y)}H{frame.right:.0f}"
        svg.add(picture, "path", "line base", d=path)
        return
    path, pen = "", "M"
    for layer, value in enumerate(line.values):
        if not math.isfinite(value):
            pen = "M"  # a gap, not a line to the next number
            continue
        path += pen + svg.points(frame.x(layer), frame.y(value))
        pen = "L"
    svg.add(picture, "path", f"line {line.kind}", d=path)
    for layer, value in enumerate(line.values):
        if not math.isfinite(value):
            continue
        x, y = frame.x(layer), frame.y(value)
        if line.mark is not None:
            where = f"translate({svg.points(x, y)})"
            svg.add(picture, "path", f"mark {line.kind}", d=axes.mark(line.mark), transform=where)
        if layer == line.chosen:
            svg.add(picture, "circle", f"chosen {line.kind}", cx=x, cy=y, r=8.5)


def _names(picture: svg.Element, frame: axes.Frame, every: list[Line]) -> None:
    """The models' names beside the ends of their lines, moved apart where they would touch."""
    ends = []
    for line in every:
        layer = max(i for i, value in enumerate(line.values) if math.isfinite(value))
        x = frame.right if line.flat else frame.x(layer) + 8
        ends.append((x, frame.y(line.values[layer])))
    heights = svg.spread([y for _, y in ends], 16, frame.top - 4, frame.bottom + 8)
    for line, (x, y), height in zip(every, ends, heights, strict=True):
        start = frame.right + 16
        path = f"M{svg.points(x, y)}L{svg.points(start, height)}"
        svg.add(picture, "path", f"leader {line.kind}", d=path)
        svg.add(picture, "text", f"of {line.kind}", line.name, x=start + 4, y=height + 4.5)
