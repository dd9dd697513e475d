"""Write SVG elements as text with every value escaped."""

from collections.abc import Iterable

from markupsafe import Markup

from hyptrans.support.errors import clean

# narrow and wide letters of the usual sans-serif fonts, in ems
_WIDTHS = dict.fromkeys("iljI.,:;'|!", 0.26) | dict.fromkeys('frt()[]-/ "', 0.34)
_WIDTHS |= dict.fromkeys("mwMW@%", 0.86) | dict.fromkeys("ABCDEGHKNOPQRSUVXY&", 0.7)
_BOLD = 1.25
"""Width of bold letters relative to regular ones, for DejaVu, the widest of the usual fonts."""


def element(tag: str, kind: str, inside: str = "", /, **attributes: float | str) -> Markup:
    """Return an element of a class; numbers are pixels with one decimal."""
    values: dict[str, float | str] = {"class": kind, **attributes}
    shown = Markup("").join(
        Markup(' {}="{}"').format(name, clean(value) if isinstance(value, str) else f"{value:.1f}")
        for name, value in values.items()
    )
    text = inside if isinstance(inside, Markup) else clean(inside)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, shown, text)


def figure(width: float, height: float, label: str, kind: str, parts: Iterable[Markup]) -> Markup:
    """Return an ``<svg>`` that screen readers treat as one image named ``label``."""
    box = f"0 0 {width:.1f} {height:.1f}"
    named: dict[str, float | str] = {"role": "img", "aria-label": label}
    inside = Markup("").join(parts)
    return element("svg", kind, inside, viewBox=box, width=width, height=height, **named)


def line(places: Iterable[tuple[float, float]]) -> str:
    """Return the path of straight lines through the places."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate the width of a text in pixels for a font of ``size``."""
    wider = _BOLD if bold else 1.0
    return wider * size * sum(_WIDTHS.get(c, 0.56 if ord(c) < 0x1100 else 1.0) for c in text)
