"""Depth in the gold tree against hyperbolic radius, one chart per model."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hyptrans.support import axes, svg

Sample = list[tuple[int, float]]

FEW = 5  # below that many words of a depth, each is a dot
TARGETS: dict[str, Callable[[float], float]] = {
    # where each loss is zero: |p|_L^2 = 2 cosh(r) - 2 and r^2, with curvature -1
    "lorentz": lambda depth: math.acosh(1 + depth / 2),
    "poincare": math.sqrt,
}


@dataclass(frozen=True)
class Box:
    """The radii of the words of one gold depth."""

    depth: int
    count: int
    quantiles: tuple[float, float, float, float, float]
    """5, 25, 50, 75 and 95 %."""
    few: tuple[float, ...]
    """The radii themselves where they are fewer than :data:`FEW`."""


def boxes(sample: Sample) -> list[Box]:
    """Summaries by gold depth, shallow first; radii that are not finite are left out."""
    groups = defaultdict(list)
    for depth, radius in sample:
        if math.isfinite(radius):
            groups[depth].append(radius)
    made = []
    for depth, radii in sorted(groups.items()):
        q5, q25, q50, q75, q95 = np.quantile(radii, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
        few = tuple(radii) if len(radii) < FEW else ()
        made.append(Box(depth, len(radii), (q5, q25, q50, q75, q95), few))
    return made


def draw(model: str, kind: str, probe: str, found: list[Box], top: float, last: int) -> svg.Element:
    """The chart of one model.

    Args:
        model: its name.
        kind: classes of its color and form.
        probe: kind of its probe; the radii that the loss of a known one asks for are drawn.
        found: what to draw, at least one.
        top: the upper end of the axis of radii, common to all models.
        last: the greatest depth, common to all models.
    """
    label = f"Hyperbolic radius by gold depth, {model}; the numbers are in the table below"
    picture = svg.figure(400, 270, label, "chart")
    upwards = axes.along(axes.ticks(0, top))
    frame = axes.Frame(42, 392, 34, 228, axes.places(last), upwards, inset=16)
    svg.add(picture, "text", "title", model, x=2, y=16)
    frame.draw(picture, "depth in the gold tree")
    frame.draw_side(picture)
    beside = 10 + svg.text_width(model, 14, bold=True)
    svg.add(picture, "text", "tick start", "radius", x=beside, y=16)
    half = min(9.0, 0.32 * (frame.x(1) - frame.x(0)) if last else 9.0)
    for box in found:
        x, (q5, q25, q50, q75, q95) = frame.x(box.depth), map(frame.y, box.quantiles)
        for radius in box.few:
            svg.add(picture, "circle", f"few {kind}", cx=x, cy=frame.y(radius), r=3)
        if box.few:
            continue
        svg.add(picture, "path", f"whisker {kind}", d=f"M{svg.points(x, q5)}V{svg.number(q95)}")
        size = {"width": 2 * half, "height": max(q25 - q75, 1)}
        svg.add(picture, "rect", f"box {kind}", x=x - half, y=q75, **size)
        svg.add(picture, "path", f"median {kind}", d=f"M{svg.points(x - half, q50)}h{2 * half:.1f}")
    if probe in TARGETS:
        # close together at the root, where the curve is steep
        depths = [last * (step / 60) ** 2 for step in range(61)]
        wanted = [(depth, TARGETS[probe](depth)) for depth in depths]
        inside = [(frame.x(d), frame.y(r)) for d, r in wanted if r <= upwards.high]
        svg.add(picture, "path", "target", d=svg.line(inside))
    return picture
