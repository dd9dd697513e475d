"""Draw a sentence's words in the Poincare disk and the predicted tree as geodesics."""

import math

import numpy as np
import torch
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from probing.report import layout, svg
from probing.report.data import Example, Prediction

RADIUS = 206.0  # radius of the unit circle in pixels
WIDTH, HEIGHT = 500.0, 436.0  # long words near the boundary need room at the sides
SIZE = 14.0
MOST_RINGS = 4
POINTS = 24  # points drawn per edge

Boxes = np.ndarray
"""``[n, 4]``: left, top, right, bottom in pixels."""


def draw(example: Example, prediction: Prediction, model: str, disk: layout.Disk) -> Markup:
    """Draw the picture of one sentence and one model."""
    words, root = example.words, prediction.root
    center = words[root] if 0 <= root < len(words) else "the origin"
    label = f"Words in the Poincare disk ({model}), {center} at the center: {' '.join(words)}"
    places, agreeing = _pixels(disk.points), set(example.gold_edges)
    pairs = sorted(prediction.edges)
    starts, ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    ways = _pixels(layout.geodesics(disk.points[starts], disk.points[ends], POINTS))
    parts = _rings(disk.scale)
    for pair, way in zip(pairs, ways.tolist(), strict=True):
        kind = "edge good" if pair in agreeing else "edge bad"
        parts.append(svg.element("path", kind, d=svg.line(way)))
    widths = [svg.text_width(word, SIZE, bold=i == root) for i, word in enumerate(words)]
    names = _name(widths, places, ways.reshape(-1, 2))
    for i, (word, place, box) in enumerate(zip(words, places, names, strict=True)):
        kind = "center" if i == root else "skip" if example.punctuation[i] else ""
        near = np.clip(place, box[:2] + 2, box[2:] - 2)
        if math.dist(place, near) > 13:
            parts.append(svg.element("path", "leader", d=svg.line([tuple(place), tuple(near)])))
        size = 6 if i == root else 2.5 if example.punctuation[i] else 4
        parts.append(svg.element("circle", f"dot {kind}", cx=place[0], cy=place[1], r=size))
        left, top, right, bottom = box
        middle, foot = (left + right) / 2, bottom - 0.28 * (bottom - top)
        parts.append(svg.element("text", f"name {kind}", word, x=middle, y=foot))
    return svg.figure(WIDTH, HEIGHT, label, "disk", parts)


def _pixels(points: Tensor) -> np.ndarray:
    """Convert points of the unit disk to pixels; the picture's second axis points down."""
    return np.array([WIDTH / 2, HEIGHT / 2]) + points.numpy() * [RADIUS, -RADIUS]


def _rings(scale: float) -> list[Markup]:
    """Draw the boundary and circles at round geodesic radii."""
    middle = {"cx": WIDTH / 2, "cy": HEIGHT / 2}
    parts = [svg.element("circle", "boundary", r=RADIUS, **middle)]
    for true in MaxNLocator(MOST_RINGS, steps=[1, 2, 5, 10]).tick_values(0, 3.5 / scale)[1:]:
        radius = RADIUS * math.tanh(true * scale / 2)
        if radius < RADIUS - 12:
            parts.append(svg.element("circle", "ring", r=radius, **middle))
            place = {"x": WIDTH / 2, "y": HEIGHT / 2 + radius + 3}
            parts.append(svg.element("text", "tick", f"{true:.4g}", **place))
    return parts


def _name(widths: list[float], points: np.ndarray, edges: np.ndarray) -> Boxes:
    """Place the words' names near their points with little overlap; return boxes, ``[n, 4]``.

    In a few rounds, each word in turn takes the best of some places around its point, given all
    others. A place costs more if it covers names, points or edges or leaves the picture.

    Shapes: widths of the names ``[n]``, points of the words ``[n, 2]`` and of the edges ``[m, 2]``,
    in pixels.
    """
    count = len(widths)
    spans = np.array([[width + 4, SIZE + 2] for width in widths])
    angles = np.arange(16) * math.tau / 16
    ways = np.stack([np.cos(angles), np.sin(angles)], 1)
    offsets = np.concatenate([distance * ways for distance in (10.0, 18.0, 30.0, 46.0, 66.0)])
    far = np.repeat([0.0, 1.0, 2.5, 5.0, 8.0], len(ways))
    # [n, places, 2]: the side of the box that faces the point touches the end of the offset
    half = np.sign(offsets.round(6)) * spans[:, None] / 2 * np.abs(np.tile(ways, (5, 1)))
    middles = points[:, None] + offsets + half
    boxes = np.concatenate([middles - spans[:, None] / 2, middles + spans[:, None] / 2], axis=2)
    fixed = far + 2 * _inside(boxes, edges) + 25 * _inside(boxes, points) + 60 * _outside(boxes)
    chosen = fixed.argmin(1)
    for _ in range(6):
        for i in range(count):
            others = np.delete(boxes[np.arange(count), chosen], i, axis=0)
            chosen[i] = (fixed[i] + _overlap(boxes[i], others)).argmin()
    return boxes[np.arange(count), chosen]


def _inside(boxes: Boxes, points: np.ndarray) -> np.ndarray:
    """Count the points in each box: ``[..., 4]`` and ``[m, 2]`` -> ``[...]``."""
    low = (points > boxes[..., None, :2]).all(-1)
    return (low & (points < boxes[..., None, 2:]).all(-1)).sum(-1)


def _outside(boxes: Boxes) -> np.ndarray:
    """Return 1 for each box that leaves the picture, else 0: ``[..., 4]`` -> ``[...]``."""
    over = np.maximum(-boxes[..., :2], boxes[..., 2:] - [WIDTH, HEIGHT])
    return (over > 0).any(-1).astype(float)


def _overlap(boxes: Boxes, others: Boxes) -> np.ndarray:
    """Return each box's cost of covering others: ``[k, 4]`` and ``[m, 4]`` -> ``[k]``."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    sides = (np.minimum(boxes[:, None, 2:], others[:, 2:]) - low).clip(0)
    area = sides.prod(-1)
    return ((area > 0) * 10.0 + area / 8).sum(1)
