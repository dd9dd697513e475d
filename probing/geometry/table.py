"""The figures of layers as the cells of a table."""

import math

from probing.geometry.layers import Layer
from probing.geometry.measures import Estimate

HEADER = (
    "layer",
    "space",
    "radius",
    "spread",
    "with frequency",
    "with position",
    "with depth",
    "directions explain",
    "Gromov's delta",
)


def cells(layer: Layer) -> list[str]:
    """What stands below :data:`HEADER`; nothing for a number that there is not."""
    space = layer.space
    curvature = "" if space.kind == "euclidean" else f", c = {space.c:.3g}"
    return [
        f"{layer.side} {layer.number}",
        f"{space.kind}{curvature}",
        f"{layer.radius:.3f}",
        f"{layer.spread:.4f}",
        _number(layer.with_frequency),
        _number(layer.with_position),
        _number(layer.with_depth),
        _estimate(layer.direction_share, percent=True),
        _estimate(layer.delta),
    ]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _estimate(found: Estimate, *, percent: bool = False) -> str:
    if math.isnan(found.mean):
        return ""
    scale, digits, unit = (100, 1, " %") if percent else (1, 3, "")
    error = "" if math.isnan(found.error) else f" ± {scale * found.error:.{digits}f}"
    return f"{scale * found.mean:.{digits}f}{error}{unit}"
