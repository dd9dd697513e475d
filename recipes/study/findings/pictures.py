"""Learning curves and scores of the final trainings as SVG; the same results, the same bytes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from hyptrans.support import axes, svg
from probing.report import lines as looks
from recipes.study.findings.finals import Line, chosen
from recipes.study.findings.table import BARS, CURVES, spread

WIDTH = 760.0
SIZE = 13.0
SHOWN = 4.0
"""The axis of perplexities ends at this times the lowest, so that the ends can be told apart."""
_TICKS = [step * power for power in (1, 10, 100) for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8)]
_APART = 22.0
"""Pixels between two ticks of the axis of perplexities, at least."""
_TOP, _HEIGHT = 34.0, 326.0
"""Of the plot of curves; bars begin at the same height."""
_ROW = 30.0
_BAR = 16.0
_STYLE = """
text { font: 12px Arial, "Liberation Sans", Helvetica, sans-serif; fill: #59626d; }
.title { font-size: 14px; font-weight: bold; fill: #1b1f24; }
.of { font-size: 13px; font-weight: bold; fill: currentColor; }
.tick { text-anchor: middle; }
.end { text-anchor: end; }
.grid { stroke: #d6dbe0; fill: none; }
.line { stroke: currentColor; stroke-width: 2; stroke-linejoin: round; fill: none; }
.mark { fill: currentColor; stroke: #fff; stroke-width: 1; }
.leader { stroke: currentColor; stroke-width: 0.8; opacity: 0.6; fill: none; }
.band { fill: currentColor; opacity: 0.2; }
.bar { fill: currentColor; opacity: 0.45; }
.dot { fill: #1b1f24; }
.m0 { color: #0063a6; } .m1 { color: #c24e00; } .m2 { color: #00795a; }
.m3 { color: #9e3d7b; } .m4 { color: #846000; } .m5 { color: #4d5b6a; }
.m6 { color: #b3261e; } .m7 { color: #5b4bc4; }
@media (prefers-color-scheme: dark) {
text { fill: #a4adb8; } .title { fill: #e7eaee; } .dot { fill: #e7eaee; }
.grid { stroke: #434b55; } .mark { stroke: #14171b; }
.m0 { color: #62b6f2; } .m1 { color: #ff9a57; } .m2 { color: #3fcaa0; }
.m3 { color: #e79ac6; } .m4 { color: #e0bd48; } .m5 { color: #b9c4d0; }
.m6 { color: #ff8f86; } .m7 { color: #a99cff; }
}
"""

_COLORS = 8

Curve = list[tuple[int, float, float, float]]
"""Update, and mean, lowest and highest perplexity over seeds."""


def pictures(lines: Sequence[Line]) -> dict[str, str]:
    """SVG by file name; none where no final training is finished."""
    finals = {model: setting.finished for model, setting in chosen(lines).items()}
    finals = {model: found for model, found in finals.items() if found}
    if not finals:
        return {}
    return {CURVES: _render(_curves(finals)), BARS: _render(_bars(finals))}


def _render(picture: svg.Element) -> str:
    return f"{svg.render(picture)}\n"


def _figure(height: float, label: str) -> svg.Element:
    picture = svg.document(WIDTH, height, label, "chart", _STYLE)
    svg.add(picture, "text", "title", label, x=2, y=16)
    return picture


def curve_of(found: Sequence[Line]) -> Curve:
    """What the seeds of a model measured at the updates that all of them have."""
    by_seed = [dict(line["curve"]) for line in found]
    common = sorted(set.intersection(*map(set, by_seed)))
    values = [(update, [curve[update] for curve in by_seed]) for update in common]
    return [(update, statistics.mean(of), min(of), max(of)) for update, of in values]


def _curves(finals: dict[str, list[Line]]) -> svg.Element:
    """A line a model: the mean over its seeds, in a band from the lowest to the highest."""
    curves = {model: curve for model, found in finals.items() if (curve := curve_of(found))}
    frame = _frame(curves)
    label = (
        "Validation perplexity by update, final trainings (logarithmic; above "
        f"{frame.upwards.high:.3g} cut off)"
    )
    picture = _figure(frame.bottom + 46, label)
    frame.draw(picture, "updates")
    clip = svg.add(picture, "clipPath", id="plot")
    size = {"width": frame.right - frame.left + 6, "height": frame.bottom - frame.top}
    svg.add(clip, "rect", x=frame.left, y=frame.top, **size)
    inside = svg.add(picture, "g", clip_path="url(#plot)")
    # the best lies on top
    for number, curve in reversed(list(enumerate(curves.values()))):
        _curve(inside, frame, number, curve)
    ends = []
    for number, (model, curve) in enumerate(curves.items()):
        update, mean, _, _ = curve[-1]
        x, y = frame.x(update) + 6, frame.y(min(mean, frame.upwards.high))
        ends.append(axes.End(x, y, model, _color(number)))
    frame.draw_names(picture, ends)
    return picture


def _frame(curves: dict[str, Curve]) -> axes.Frame:
    """Updates across, and perplexities upwards on a logarithmic axis."""
    room = max(svg.text_width(name, SIZE) for name in curves)
    last = max(curve[-1][0] for curve in curves.values())
    low = 0.97 * min(lowest for curve in curves.values() for _, _, lowest, _ in curve)
    ticks = _perplexities(low)
    return axes.Frame(
        left=40,
        right=WIDTH - room - 34,
        top=_TOP,
        bottom=_TOP + _HEIGHT,
        across=axes.along(axes.ticks(0, last), ",.0f"),
        upwards=axes.Axis(low, SHOWN * low, ticks, [f"{tick:g}" for tick in ticks], True),
    )


def _perplexities(low: float) -> list[float]:
    """Round perplexities far enough apart, from the lowest."""
    chosen: list[float] = []
    for tick in _TICKS:
        inside = low <= tick <= SHOWN * low
        if inside and (not chosen or _HEIGHT * math.log(tick / chosen[-1], SHOWN) >= _APART):
            chosen.append(tick)
    return chosen


def _color(number: int) -> str:
    return f"m{number % _COLORS}"


def _curve(parent: svg.Element, frame: axes.Frame, number: int, curve: Curve) -> None:
    kind = _color(number)
    lower = [(frame.x(update), frame.y(low)) for update, _, low, _ in curve]
    upper = [(frame.x(update), frame.y(high)) for update, _, _, high in curve]
    if lower != upper:
        svg.add(parent, "path", f"band {kind}", d=f"{svg.line([*lower, *reversed(upper)])}Z")
    means = [(frame.x(update), frame.y(mean)) for update, mean, _, _ in curve]
    svg.add(parent, "path", f"line {kind}", d=svg.line(means))
    for place in means:
        where = f"translate({svg.points(*place)})"
        svg.add(parent, "path", f"mark {kind}", d=looks.mark(number), transform=where)


def _bars(finals: dict[str, list[Line]]) -> svg.Element:
    """A bar a model: the mean over its seeds, and a dot for each of them."""
    left = 12 + max(svg.text_width(model, SIZE, bold=True) for model in finals)
    right = WIDTH - 110
    top, bottom = _TOP, _TOP + _ROW * len(finals)
    ticks = axes.ticks(0, max(line["bleu"] for found in finals.values() for line in found))

    def x(score: float) -> float:
        return left + (right - left) * score / ticks[-1]

    picture = _figure(bottom + 28, "BLEU on test_2016_flickr, final trainings, each seed a dot")
    for tick in ticks:
        svg.add(picture, "path", "grid", d=f"M{svg.points(x(tick), top)}V{bottom:.0f}")
        svg.add(picture, "text", "tick", f"{tick:g}", x=x(tick), y=bottom + 18)
    for number, (model, found) in enumerate(finals.items()):
        kind, y = _color(number), top + _ROW * (number + 0.5)
        scores = [float(line["bleu"]) for line in found]
        length = x(statistics.mean(scores)) - left
        svg.add(picture, "text", f"of end {kind}", model, x=left - 8, y=y + 4.5)
        size = {"width": length, "height": _BAR}
        svg.add(picture, "rect", f"bar {kind}", x=left, y=y - _BAR / 2, **size)
        for score in scores:
            svg.add(picture, "circle", "dot", cx=x(score), cy=y, r=2.5)
        svg.add(picture, "text", f"of {kind}", spread(found, "bleu"), x=right + 12, y=y + 4.5)
    return picture
