"""Learning curves as one SVG, with the report's pieces of SVG."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from hyptrans.evaluation.curves import METRICS, Course
from hyptrans.support import axes, svg

_WIDTH, _HEIGHT, _ROOM = 520.0, 250.0, 16.0
_LEFT, _TOP, _BOTTOM = 64.0, 34.0, 46.0
_COLORS = ("#0b6e99", "#c4471c", "#3a7d34", "#8a4fa3", "#a8780d", "#5a5f66")
_STYLE = """
svg{background:#fff;font:13px sans-serif}
text{fill:#222}.tick{fill:#555;font-size:12px;text-anchor:middle}.end{text-anchor:end}
.title{font-weight:600}.grid{stroke:#ddd;fill:none}.line{fill:none;stroke-width:1.8}
"""


def draw(courses: Sequence[Course]) -> str:
    """A chart under another for each metric that a training has, a line for each training."""
    titles = [title for metrics in METRICS.values() for title in metrics.values()]
    titles = [title for title in titles if any(title in course.curves for course in courses)]
    room = max(svg.text_width(course.name, 13) for course in courses) + 30
    height = len(titles) * _HEIGHT + _ROOM * (len(courses) + 1)
    label = f"{', '.join(titles)} of {', '.join(course.name for course in courses)}, by updates"
    picture = svg.figure(_WIDTH + room, height, label, "curves")
    picture.set("xmlns", "http://www.w3.org/2000/svg")
    ET.SubElement(picture, "style").text = _STYLE
    for row, title in enumerate(titles):
        _panel(picture, courses, title, row * _HEIGHT)
    for i, course in enumerate(courses):
        y = len(titles) * _HEIGHT + _ROOM * (i + 1)
        svg.add(picture, "path", "line", d=f"M{svg.points(_LEFT, y - 4)}h24", stroke=_color(i))
        svg.add(picture, "text", "", course.name, x=_LEFT + 30, y=y)
    return svg.render(picture) + "\n"


def _color(index: int) -> str:
    return _COLORS[index % len(_COLORS)]


def _panel(picture: svg.Element, courses: Sequence[Course], title: str, top: float) -> None:
    curves = [sorted(course.curves.get(title, {}).items()) for course in courses]
    points = [point for curve in curves for point in curve]
    across = axes.ticks(0, max(updates for updates, _ in points))
    upwards = axes.ticks(min(value for _, value in points), max(value for _, value in points))
    bottom = top + _HEIGHT - _BOTTOM

    def x(updates: float) -> float:
        return _LEFT + (_WIDTH - _LEFT) * updates / across[-1]

    def y(value: float) -> float:
        share = (value - upwards[0]) / (upwards[-1] - upwards[0])
        return bottom - share * (bottom - top - _TOP)

    svg.add(picture, "text", "title", title, x=2, y=top + 18)
    for value in upwards:
        svg.add(picture, "path", "grid", d=f"M{svg.points(_LEFT, y(value))}H{_WIDTH:.0f}")
        svg.add(picture, "text", "tick end", f"{value:.4g}", x=_LEFT - 7, y=y(value) + 4)
    for value in across:
        svg.add(picture, "text", "tick", f"{value:,.0f}", x=x(value), y=bottom + 17)
    svg.add(picture, "text", "tick", "updates", x=(_LEFT + _WIDTH) / 2, y=bottom + 34)
    for i, curve in enumerate(curves):
        if curve:
            path = "L".join(svg.points(x(updates), y(value)) for updates, value in curve)
            svg.add(picture, "path", "line", d=f"M{path}", stroke=_color(i))
