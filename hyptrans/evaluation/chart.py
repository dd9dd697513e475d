"""Learning curves as one SVG."""

from collections.abc import Sequence

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
    picture = svg.document(_WIDTH + room, height, label, "curves", _STYLE)
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
    values = [value for _, value in points]
    frame = axes.Frame(
        left=_LEFT,
        right=_WIDTH,
        top=top + _TOP,
        bottom=top + _HEIGHT - _BOTTOM,
        across=axes.along(axes.ticks(0, max(updates for updates, _ in points)), ",.0f"),
        upwards=axes.along(axes.ticks(min(values), max(values))),
    )
    svg.add(picture, "text", "title", title, x=2, y=top + 18)
    frame.draw(picture, "updates")
    for i, curve in enumerate(curves):
        if curve:
            path = svg.line((frame.x(updates), frame.y(value)) for updates, value in curve)
            svg.add(picture, "path", "line", d=path, stroke=_color(i))
