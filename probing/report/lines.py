"""Line charts, and the colors, forms and marks that tell models apart in all charts."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from probing.report import svg
from probing.report.data import ModelResult

SIZE = 13.0
Range = tuple[float, float]
ANY, SHARE, LENGTH = (-math.inf, math.inf), (0.0, 1.0), (0.0, math.inf)
"""What numbers can be: deviations are drawn no further."""
COLORS = 6
"""Colors in the style sheet; more models repeat them with other marks."""

# paths around the origin, about 9 pixels wide
_MARKS = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-4.8L4.6 3.6H-4.6Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 4.8L4.6-3.6H-4.6Z",
    "M-5-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z",
    "M-2.4-5H2.4V5H-2.4Z",
)


@dataclass(frozen=True)
class Look:
    """How a model is drawn, the same in every chart.

    Attributes:
        kind: classes of the style sheet: a color, that of its trained encoder, and a form.
        mark: path of its mark, so that color is not all that tells it apart; none of baselines.
    """

    kind: str
    mark: str | None


def looks(models: Sequence[ModelResult]) -> dict[str, Look]:
    """A look for each model: a color for each encoder, a form for each role."""
    numbers = {m.name: i for i, m in enumerate(m for m in models if m.role == "encoder")}
    found = {}
    for model in models:
        number = numbers.get(model.of or model.name)
        if number is None:
            found[model.name] = Look("base", None)
            continue
        kind = f"m{number % COLORS}"
        if model.role != "encoder":
            kind += f" {model.role}"
        found[model.name] = Look(kind, mark(number))
    return found


def mark(index: int) -> str:
    """One of the marks, for what is told apart within a model."""
    return _MARKS[index % len(_MARKS)]


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


def axis(every: Sequence[Line]) -> list[float]:
    """Ticks that the values of lines and their deviations fit in; none of lines without values."""
    reach = [end for line in every for place in line.places for end in line.ends(place)]
    return svg.ticks(min(reach), max(reach)) if reach else []


def plot(
    every: Sequence[Line],
    title: str,
    across: str,
    label: str,
    *,
    names: Sequence[str] = (),
    ticks: Sequence[float] = (),
) -> svg.Element:
    """A chart of lines.

    Args:
        every: at least one that is not flat; the first lies on top.
        title: stands over the axis upwards.
        across: name of the other axis.
        label: what a screen reader says.
        names: of the places along it, if they are not numbered from 0.
        ticks: of the axis upwards; by default those that fit the values.
    """
    last = max(len(line.values) for line in every) - 1
    room = max(svg.text_width(line.name, SIZE, bold=True) for line in every)
    height = max(230.0, 16.0 * len(every) + 70)
    upwards = svg.along(ticks or axis(every))
    frame = svg.Frame(44, 306, 34, height - 42, svg.places(last, names), upwards, inset=14)
    if frame.cut:
        label += f"; the axis begins at {upwards.low:.4g}"
    picture = svg.figure(frame.right + 22 + room, height, label, "chart")
    svg.add(picture, "text", "title", title, x=2, y=16)
    frame.draw(picture, across)
    for line in reversed(every):
        _draw(picture, frame, line)
    _draw_names(picture, frame, every)
    return picture


def _draw(picture: svg.Element, frame: svg.Frame, line: Line) -> None:
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
    for place in line.places:
        x, y = frame.x(place), frame.y(line.values[place])
        if line.spread and math.isfinite(line.spread[place]):
            low, high = map(frame.y, line.ends(place))
            path = f"M{svg.points(x, low)}V{svg.number(high)}"
            svg.add(picture, "path", f"whisker {line.kind}", d=path)
        if line.mark is not None:
            where = f"translate({svg.points(x, y)})"
            svg.add(picture, "path", f"mark {line.kind}", d=line.mark, transform=where)
        if place in line.rings:
            svg.add(picture, "circle", f"chosen {line.kind}", cx=x, cy=y, r=8.5)


def _draw_names(picture: svg.Element, frame: svg.Frame, every: Sequence[Line]) -> None:
    """Write names to the right of the ends of lines, moved apart where they would touch."""
    ends = []
    for line in every:
        last = line.places[-1]
        x = frame.right if line.flat else frame.x(last) + 8
        ends.append((x, frame.y(line.values[last])))
    heights = svg.spread([y for _, y in ends], 16, frame.top - 4, frame.bottom + 8)
    start = frame.right + 16
    for line, end, height in zip(every, ends, heights, strict=True):
        svg.add(picture, "path", f"leader {line.kind}", d=svg.line([end, (start, height)]))
        svg.add(picture, "text", f"of {line.kind}", line.name, x=start + 4, y=height + 4.5)
