"""Line charts: the metrics over the layers, one small chart per metric."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hyptrans.support import axes, svg
from probing.report import looks
from probing.report.data import ModelResult
from probing.report.results import TITLES

OF_DISTANCE = ("uuas", "dspr")
SIZE = 13.0
Range = tuple[float, float]
ANY, SHARE, LENGTH = (-math.inf, math.inf), (0.0, 1.0), (0.0, math.inf)
"""What numbers can be: deviations are drawn no further."""


@dataclass(frozen=True)
class Line:
    """One line in a chart.

    Attributes:
        name: stands at its end.
        kind: classes of its color and form.
        mark: path of its mark.
        values: along the axis across; the one value of a line that runs across the plot.
        rings: places that a ring marks.
        spread: standard deviations of the values, or nothing.
        within: what the values can be.
        flat: it runs across the plot.
    """

    name: str
    kind: str
    mark: str | None
    values: Sequence[float]
    rings: Collection[int] = ()
    spread: Sequence[float] = ()
    within: Range = ANY
    flat: bool = False


def reach(
    values: Sequence[float], spread: Sequence[float] = (), within: Range = ANY
) -> list[float]:
    """The numbers that an axis has to hold: values, and the ends of their deviations."""
    return [
        end
        for value, deviation in zip(values, spread or [0.0] * len(values), strict=True)
        for end in ends(value, deviation, within)
        if math.isfinite(value)
    ]


def ends(value: float, deviation: float, within: Range) -> Range:
    """A value less and more its deviation, if that is a number, as far as there can be one."""
    more = deviation if math.isfinite(deviation) else 0.0
    low, high = within
    return max(value - more, min(low, value)), min(value + more, max(high, value))


def lines(models: Sequence[ModelResult], metric: str) -> list[Line]:
    """The lines of one metric over layers: of all that has a number."""
    made, shown = [], looks.looks(models)
    task = 0 if metric in OF_DISTANCE else 1
    for model in models:
        look, flat = shown[model.name], not model.layers
        found = [model.test] if flat else model.layers
        values = [one.get(metric, math.nan) for one in found]
        rings = frozenset(pair[task] for pair in model.chosen_layers)
        if any(map(math.isfinite, values)):
            made.append(Line(model.name, look.kind, look.mark, values, rings, flat=flat))
    return made


def draw(models: Sequence[ModelResult], metric: str) -> svg.Element | None:
    """The chart of one metric over layers; None where no model has a number for any layer."""
    every = lines(models, metric)
    if all(line.flat for line in every):
        return None
    title = TITLES[metric]
    label = f"{title} over the layers of each model; the numbers are in the table below"
    return plot(every, title, "layer", label)


def plot(
    every: Sequence[Line],
    title: str,
    across: str,
    label: str,
    *,
    names: Sequence[str] = (),
    axis: Sequence[float] = (),
) -> svg.Element:
    """A chart of lines.

    Args:
        every: at least one that is not flat; the first lies on top.
        title: stands over the axis upwards.
        across: name of the other axis.
        label: what a screen reader says.
        names: of the places along it, if they are not numbered from 0.
        axis: ticks upwards; by default those that fit the values.
    """
    values = [value for line in every for value in reach(line.values, line.spread, line.within)]
    last = max(len(line.values) for line in every) - 1
    room = max(svg.text_width(line.name, SIZE, bold=True) for line in every)
    height = max(230.0, 16.0 * len(every) + 70)
    upwards = axes.along(axis or axes.ticks(min(values), max(values)))
    frame = axes.Frame(44, 306, 34, height - 42, axes.places(last, names), upwards, inset=14)
    if frame.cut:
        label += f"; the axis begins at {upwards.low:.4g}"
    picture = svg.figure(frame.right + 22 + room, height, label, "chart")
    svg.add(picture, "text", "title", title, x=2, y=16)
    frame.draw(picture, across)
    frame.draw_side(picture)
    for line in reversed(every):
        _line(picture, frame, line)
    frame.draw_names(picture, [_end(frame, line) for line in every])
    return picture


def _line(picture: svg.Element, frame: axes.Frame, line: Line) -> None:
    """A model over its layers, its chosen layers ringed, or a line across the plot."""
    if line.flat:
        y = frame.y(line.values[0])
        path = f"M{svg.points(frame.left, y)}H{frame.right:.0f}"
        svg.add(picture, "path", f"line {line.kind}", d=path)
        return
    path, pen = "", "M"
    for place, value in enumerate(line.values):
        if not math.isfinite(value):
            pen = "M"  # a gap, not a line to the next number
            continue
        path += pen + svg.points(frame.x(place), frame.y(value))
        pen = "L"
    svg.add(picture, "path", f"line {line.kind}", d=path)
    for place, value in enumerate(line.values):
        if not math.isfinite(value):
            continue
        x, y = frame.x(place), frame.y(value)
        if line.spread and math.isfinite(line.spread[place]):
            low, high = map(frame.y, ends(value, line.spread[place], line.within))
            path = f"M{svg.points(x, low)}V{svg.number(high)}"
            svg.add(picture, "path", f"whisker {line.kind}", d=path)
        if line.mark is not None:
            where = f"translate({svg.points(x, y)})"
            svg.add(picture, "path", f"mark {line.kind}", d=line.mark, transform=where)
        if place in line.rings:
            svg.add(picture, "circle", f"chosen {line.kind}", cx=x, cy=y, r=8.5)


def _end(frame: axes.Frame, line: Line) -> axes.End:
    place = max(i for i, value in enumerate(line.values) if math.isfinite(value))
    x = frame.right if line.flat else frame.x(place) + 8
    return axes.End(x, frame.y(line.values[place]), line.name, line.kind)
