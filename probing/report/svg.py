"""Small pieces of SVG, built as trees so that every text and attribute is escaped, and axes."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from hyptrans.support.errors import clean

Element = ET.Element

# narrow and wide letters of the usual sans-serif fonts, in ems
_WIDTHS = dict.fromkeys("iljI.,:;'|!", 0.26) | dict.fromkeys('frt()[]-/ "', 0.34)
_WIDTHS |= dict.fromkeys("mwMW@%", 0.86) | dict.fromkeys("ABCDEGHKNOPQRSUVXY&", 0.7)
_BOLD = 1.25
"""By how much the letters of the bold cut are wider, for DejaVu's, the widest of the usual ones."""
MOST_PLACES = 13
"""Numbers that fit below a chart."""


def number(value: float) -> str:
    """At most one decimal, no ``-0`` and no ``.0``: pictures are drawn in units of a pixel."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def points(*values: float) -> str:
    """Numbers of a path."""
    return " ".join(number(value) for value in values)


def line(places: Iterable[tuple[float, float]]) -> str:
    """A path from place to place."""
    return "M" + "L".join(points(*place) for place in places)


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """About the width of a text in pixels, for a font of ``size``."""
    wider = _BOLD if bold else 1.0
    return wider * size * sum(_WIDTHS.get(c, 0.56 if ord(c) < 0x1100 else 1.0) for c in text)


def figure(width: float, height: float, label: str, kind: str) -> Element:
    """An ``<svg>`` that is one image to a screen reader, named by ``label``."""
    return ET.Element(
        "svg",
        {
            "class": kind,
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "width": number(width),
            "height": number(height),
            "role": "img",
            "aria-label": clean(label),
        },
    )


def add(
    parent: Element, tag: str, kind: str = "", text: str = "", /, **attributes: object
) -> Element:
    """Append an element; ``kind`` is its class, numbers are rounded, ``_`` in a name is ``-``."""
    values = {"class": kind} if kind else {}
    for name, value in attributes.items():
        shown = number(value) if isinstance(value, float | int) else str(value)
        values[name.replace("_", "-")] = clean(shown)
    child = ET.SubElement(parent, tag, values)
    child.text = clean(text) if text else None
    return child


def render(element: Element) -> str:
    """The element as text to put into HTML."""
    return ET.tostring(element, encoding="unicode")


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, in their order, at least ``gap`` apart, within bounds.

    Where all cannot fit, the gap shrinks.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    if len(order) > 1:
        gap = min(gap, (high - low) / (len(order) - 1))
    placed = [0.0] * len(wanted)
    below = low - gap
    for i in order:
        below = placed[i] = max(wanted[i], below + gap)
    above = high + gap
    for i in reversed(order):
        above = placed[i] = min(placed[i], above - gap)
    return placed


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
    """

    low: float
    high: float
    ticks: Sequence[float]
    names: Sequence[str]

    def share(self, value: float) -> float:
        """How far along a number is: 0 where the axis begins, 1 where it ends."""
        length = self.high - self.low
        return (value - self.low) / length if length else 0.5


def along(numbers: Sequence[float]) -> Axis:
    """An axis from the first to the last of its ticks."""
    names = [f"{number:.4g}".replace("-", "\N{MINUS SIGN}") for number in numbers]
    return Axis(numbers[0], numbers[-1], numbers, names)


def places(last: int, names: Sequence[str] = ()) -> Axis:
    """An axis over the whole numbers from 0 to ``last``, as many marked as there is room for."""
    shown = range(0, last + 1, max(1, math.ceil((last + 1) / MOST_PLACES)))
    return Axis(0, last, shown, [names[place] if names else str(place) for place in shown])


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

    def draw(self, picture: Element, across: str) -> None:
        """Draw both axes with their numbers, lines at the ticks upwards, and a name below.

        Two strokes cross the foot of an axis upwards that does not begin at 0.
        """
        for value, name in zip(self.upwards.ticks, self.upwards.names, strict=True):
            y = self.y(value)
            add(picture, "path", "grid", d=f"M{points(self.left, y)}H{self.right:.0f}")
            add(picture, "text", "tick end", name, x=self.left - 7, y=y + 4)
        for value, name in zip(self.across.ticks, self.across.names, strict=True):
            add(picture, "text", "tick", name, x=self.x(value), y=self.bottom + 17)
        middle = (self.left + self.right) / 2
        add(picture, "text", "tick", across, x=middle, y=self.bottom + 34)
        if self.cut:
            for y in (self.bottom - 5, self.bottom - 9):
                stroke = line([(self.left - 4, y + 2), (self.left + 4, y - 2)])
                add(picture, "path", "cut", d=stroke)
        add(picture, "path", "axis", d=f"M{points(self.left, self.top)}V{self.bottom:.0f}")
