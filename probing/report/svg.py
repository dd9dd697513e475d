"""Small pieces of SVG, built as trees so that every text and attribute is escaped."""

import math
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from markupsafe import Markup

from hyptrans.support.errors import clean

Element = ET.Element

# narrow and wide letters of the usual sans-serif fonts, in ems
_WIDTHS = dict.fromkeys("iljI.,:;'|!", 0.26) | dict.fromkeys('frt()[]-/ "', 0.34)
_WIDTHS |= dict.fromkeys("mwMW@%", 0.86) | dict.fromkeys("ABCDEGHKNOPQRSUVXY&", 0.7)
_BOLD = 1.25
"""By how much the letters of the bold cut are wider, for DejaVu's, the widest of the usual ones."""


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


def markup(element: Element) -> Markup:
    """The element as HTML that is escaped already."""
    return Markup(ET.tostring(element, encoding="unicode"))


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


def round_step(wanted: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(power * k for k in (1, 2, 5, 10, 20) if power * k >= wanted * (1 - 1e-9))
