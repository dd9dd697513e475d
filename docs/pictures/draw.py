"""Draw the picture of geometry.md with the package's own formulas: models.svg beside this file."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import torch
from torch import Tensor

from hyptrans.geometry import lorentz, poincare
from hyptrans.support.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = torch.linspace(0, 1, 60, dtype=torch.float64)[:, None]
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "hyptrans", "font.size": 9}


def main() -> None:
    """Write the picture; the same bytes each time."""
    matplotlib.use("svg")
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(1, 3, figsize=(7.6, 2.7), layout="constrained")
        _hyperboloid(axes[0])
        for axis, title, project in (
            (axes[1], "Poincaré: angles as they are", poincare.from_lorentz),
            (axes[2], "Klein: geodesics are straight", lambda x: x[..., 1:] / x[..., :1]),
        ):
            _disk(axis, title, project)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    write_whole(Path(__file__).with_name("models.svg"), file.getvalue().decode())


def _hyperboloid(axis: Axes) -> None:
    """A point of the hyperbola with its two projections."""
    radius = torch.linspace(-1.9, 1.9, 99)
    axis.plot(radius.sinh(), radius.cosh(), color="#0063a6")
    axis.plot([-2.6, 2.6], [0, 0], color="#888888", linewidth=0.6)
    axis.plot([-3, 0, 3], [3, 0, 3], color="#888888", linestyle=":", linewidth=0.8)
    space, time = math.sinh(1.4), math.cosh(1.4)
    axis.plot([0, space], [-1, time], color="#c24e00", linewidth=0.8)
    axis.plot([space / (1 + time), space, 0], [0, time, 1], "o", color="#c24e00", markersize=4)
    axis.annotate("x", (space, time), textcoords="offset points", xytext=(6, -3))
    axis.annotate("origin", (0, 1), textcoords="offset points", xytext=(-16, 6))
    axis.annotate(
        "in the ball", (space / (1 + time), 0), textcoords="offset points", xytext=(-8, -11)
    )
    axis.set(title="Lorentz: time over space", xlim=(-3, 3), ylim=(-1.1, 3.2), xlabel="space")
    axis.set_ylabel("time")


def _disk(axis: Axes, title: str, project: Callable[[Tensor], Tensor]) -> None:
    """A tree of three levels whose edges are geodesics of one length."""
    turn = torch.linspace(0, 2 * math.pi, 200)
    axis.plot(turn.cos(), turn.sin(), color="#888888", linewidth=0.8)
    nodes = [(lorentz.origin(3, dtype=torch.float64), 0.0, 2 * math.pi, 0)]
    while nodes:
        node, start, width, level = nodes.pop()
        for child in range(3 if level < 3 else 0):
            angle = start + width * (child + 0.5) / 3
            direction = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
            below = lorentz.exp_origin(1.35 * (level + 1) * direction)
            edge = lorentz.centroid(
                torch.stack([node.expand(60, 3), below.expand(60, 3)], dim=1),
                torch.cat([1 - STEPS, STEPS], dim=1)[:, None],
            )[:, 0]
            drawn = project(edge)
            axis.plot(drawn[:, 0], drawn[:, 1], color="#0063a6", linewidth=0.9)
            axis.plot(*drawn[-1], "o", color="#c24e00", markersize=3)
            nodes.append((below, start + width * child / 3, width / 3, level + 1))
    axis.set(title=title, aspect="equal")
    axis.axis("off")


if __name__ == "__main__":
    main()
