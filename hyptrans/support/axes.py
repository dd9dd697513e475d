"""Axes of charts: round numbers along them, and the places of numbers in a picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hyptrans.support import svg

MOST_PLACES = 13
"""Numbers that fit below a chart."""


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover a range; the first and the last are the ends of the axis."""
    step = round_step(max(high - low, 1e-9) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * k for k in range(first, max(last, first + 1) + 1)]


def round_step(wanted: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(power * k for k in (1, 2, 5, 10, 20) if power * k >= wanted * (1 - 1e-9))


@dataclass(frozen=True)
class Axis:
    """Numbers along one side of a plot.

    Attributes:
        low: where it begins.
        high: where it ends.
        ticks: the numbers that are marked.
        names: what stands at them.
        logarithmic: equal ratios are equally long.
    """

    low: float
    high: float
    ticks: Sequence[float]
    names: Sequence[str]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """How far along a number is: 0 where the axis begins, 1 where it ends."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        length = self.high - self.low
        return (value - self.low) / length if length else 0.5


def along(numbers: Sequence[float], form: str = ".4g") -> Axis:
    """An axis from the first to the last of its ticks; ``form``: of their names."""
    names = [format(number, form).replace("-", "\N{MINUS SIGN}") for number in numbers]
    return Axis(numbers[0], numbers[-1], numbers, names)


def places(last: int, names: Sequence[str] = ()) -> Axis:
    """An axis over the whole numbers from 0 to ``last``, as many marked as there is room for."""
    shown = range(0, last + 1, max(1, math.ceil((last + 1) / MOST_PLACES)))
    return Axis(0, last, shown, [names[place] if names else str(place) for place in shown])


@dataclass(frozen=True)
class End:
    """Where a line ends, and the name that belongs there with its classes."""

    x: float
    y: float
    name: str
    kind: str


@dataclass(frozen=True)
class Frame:
    """A plot inside a picture: where it lies and the numbers along its axes."""

    left: float
    right: float
    top: float
    bottom: float
    across: Axis
    upwards: Axis
    inset: float = 0
    """Between the sides and the first and last number across."""

    @property
    def cut(self) -> bool:
        """The axis upwards does not begin at 0."""
        return self.upwards.low > 0

    def x(self, value: float) -> float:
        """Pixels of a number of the axis across."""
        width = self.right - self.left - 2 * self.inset
        return self.left + self.inset + width * self.across.share(value)

    def y(self, value: float) -> float:
        """Pixels of a number of the axis upwards."""
        return self.bottom - (self.bottom - self.top) * self.upwards.share(value)

    def draw(self, picture: svg.Element, across: str) -> None:
        """Draw lines at the ticks upwards, the numbers of both axes, and a name below."""
        for value, name in zip(self.upwards.ticks, self.upwards.names, strict=True):
            y = self.y(value)
            svg.add(picture, "path", "grid", d=f"M{svg.points(self.left, y)}H{self.right:.0f}")
            svg.add(picture, "text", "tick end", name, x=self.left - 7, y=y + 4)
        for value, name in zip(self.across.ticks, self.across.names, strict=True):
            svg.add(picture, "text", "tick", name, x=self.x(value), y=self.bottom + 17)
        middle = (self.left + self.right) / 2
        svg.add(picture, "text", "tick", across, x=middle, y=self.bottom + 34)

    def draw_side(self, picture: svg.Element) -> None:
        """Draw the axis upwards, with two strokes across its foot if it does not begin at 0."""
        if self.cut:
            for y in (self.bottom - 5, self.bottom - 9):
                stroke = svg.line([(self.left - 4, y + 2), (self.left + 4, y - 2)])
                svg.add(picture, "path", "cut", d=stroke)
        svg.add(picture, "path", "axis", d=f"M{svg.points(self.left, self.top)}V{self.bottom:.0f}")

    def draw_names(self, picture: svg.Element, ends: Sequence[End]) -> None:
        """Draw names to the right of the ends of lines, moved apart where they would touch."""
        heights = svg.spread([end.y for end in ends], 16, self.top - 4, self.bottom + 8)
        start = self.right + 16
        for end, height in zip(ends, heights, strict=True):
            leader = svg.line([(end.x, end.y), (start, height)])
            svg.add(picture, "path", f"leader {end.kind}", d=leader)
            svg.add(picture, "text", f"of {end.kind}", end.name, x=start + 4, y=height + 4.5)
