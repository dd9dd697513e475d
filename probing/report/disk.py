"""The words of a sentence in the Poincare disk, the predicted tree drawn as geodesics."""

import math

import numpy as np

from probing.report import layout, svg
from probing.report.arcs import undirected
from probing.report.data import Example, Prediction

RADIUS = 206.0  # of the unit circle, in pixels
WIDTH, HEIGHT = 500.0, 436.0  # long words near the boundary need room at the sides
SIZE = 14.0
MOST_RINGS = 4

Boxes = np.ndarray
"""``[n, 4]``: left, top, right, bottom in pixels."""


def lay_out(example: Example, prediction: Prediction) -> layout.Disk | None:
    """The points of the distance probe around the predicted root."""
    kept = [not mark for mark in example.punctuation]
    return layout.place(prediction.distance_points, prediction.root, kept)


def draw(example: Example, prediction: Prediction, model: str, disk: layout.Disk) -> svg.Element:
    """The picture of one sentence and one model."""
    words, root = example.words, prediction.root
    center = words[root] if 0 <= root < len(words) else "the origin"
    label = f"Words in the Poincare disk ({model}), {center} at the center: {' '.join(words)}"
    picture = svg.figure(WIDTH, HEIGHT, label, "disk")
    _rings(picture, disk.scale)
    places = [_pixel(float(x), float(y)) for x, y in disk.points.tolist()]
    flat = [(float(x), float(y)) for x, y in disk.points.tolist()]
    agreeing = undirected(example.gold_edges)
    drawn: list[tuple[float, float]] = []
    for i, j in sorted(undirected(prediction.edges)):
        arc = layout.geodesic(flat[i], flat[j])
        kind = "good" if (i, j) in agreeing else "bad"
        svg.add(picture, "path", f"edge {kind}", d=_path(arc))
        drawn += [_pixel(*point) for point in layout.along(arc, 12)]
    names = _name(words, places, drawn)
    for i, word in enumerate(words):
        kind = "center" if i == root else "skip" if example.punctuation[i] else ""
        x, y = places[i]
        left, top, right, bottom = names[i]
        _leader(picture, (x, y), names[i])
        size = 6 if i == root else 2.5 if example.punctuation[i] else 4
        svg.add(picture, "circle", f"dot {kind}".strip(), cx=x, cy=y, r=size)
        shift = (left + right) / 2, bottom - 0.28 * (bottom - top)
        svg.add(picture, "text", f"name {kind}".strip(), word, x=shift[0], y=shift[1])
    return picture


def _pixel(x: float, y: float) -> tuple[float, float]:
    """Where a point of the unit disk is in the picture, whose second axis points down."""
    return WIDTH / 2 + RADIUS * x, HEIGHT / 2 - RADIUS * y


def _path(arc: layout.Arc) -> str:
    """An SVG path that is the geodesic itself: a circular arc or a line."""
    start, end = svg.points(*_pixel(*arc.start)), svg.points(*_pixel(*arc.end))
    if arc.center is None or arc.radius > 200:
        return f"M{start}L{end}"
    # the second axis is flipped, and with it the direction of turning
    sweep = 0 if layout.turns_left(arc) else 1
    radius = svg.number(arc.radius * RADIUS)
    return f"M{start}A{radius} {radius} 0 0 {sweep} {end}"


def _rings(picture: svg.Element, scale: float) -> None:
    """The boundary, and circles at whole geodesic radii (or a round part, or multiple, of one)."""
    middle = {"cx": WIDTH / 2, "cy": HEIGHT / 2}
    svg.add(picture, "circle", "boundary", r=RADIUS, **middle)
    step = svg.round_step(3.5 / scale / MOST_RINGS)
    for k in range(1, MOST_RINGS + 1):
        radius = RADIUS * layout.to_disk(k * step * scale)
        if radius < RADIUS - 12:
            svg.add(picture, "circle", "ring", r=radius, **middle)
            text = f"{k * step:.4g}"
            svg.add(picture, "text", "tick", text, x=WIDTH / 2, y=HEIGHT / 2 + radius + 3)


def _name(
    words: list[str], places: list[tuple[float, float]], drawn: list[tuple[float, float]]
) -> Boxes:
    """Boxes for the words' names near their points, with little overlap: ``[n, 4]``.

    Each word in turn takes the best of some places around its point, given all others; a few
    rounds settle it. Names pay for covering names, points, edges and for leaving the picture.
    """
    count = len(words)
    points = np.array(places).reshape(count, 2)
    edges = np.array(drawn).reshape(-1, 2)
    spans = np.array([[svg.text_width(word, SIZE) + 4, SIZE + 2] for word in words])
    angles = np.arange(16) * math.tau / 16
    ways = np.stack([np.cos(angles), np.sin(angles)], 1)
    offsets = np.concatenate([distance * ways for distance in (8.0, 16.0, 28.0, 44.0, 64.0)])
    far = np.repeat([0.0, 1.0, 2.5, 5.0, 8.0], len(ways))
    # [n, places, 2]: the box touches the end of the offset with the side that faces the point
    middles = (
        points[:, None]
        + offsets
        + np.sign(offsets.round(6)) * spans[:, None] / 2 * np.abs(np.tile(ways, (5, 1)))
    )
    boxes = np.concatenate([middles - spans[:, None] / 2, middles + spans[:, None] / 2], axis=2)
    fixed = (
        far + 2.0 * _inside(boxes, edges) + 25.0 * _inside(boxes, points) + 60.0 * _outside(boxes)
    )
    chosen = fixed.argmin(1)
    for _ in range(6):
        for i in range(count):
            others = np.delete(boxes[np.arange(count), chosen], i, axis=0)
            chosen[i] = (fixed[i] + _overlap(boxes[i], others)).argmin()
    return boxes[np.arange(count), chosen]


def _inside(boxes: Boxes, points: np.ndarray) -> np.ndarray:
    """How many points lie in each box: ``[..., 4]`` and ``[m, 2]`` -> ``[...]``."""
    low = (points > boxes[..., None, :2]).all(-1)
    return (low & (points < boxes[..., None, 2:]).all(-1)).sum(-1)


def _outside(boxes: Boxes) -> np.ndarray:
    """Whether each box leaves the picture: ``[..., 4]`` -> ``[...]``."""
    over = np.maximum(-boxes[..., :2], boxes[..., 2:] - [WIDTH, HEIGHT])
    return (over > 0).any(-1).astype(float)


def _overlap(boxes: Boxes, others: Boxes) -> np.ndarray:
    """What each box pays for covering others: ``[k, 4]`` and ``[m, 4]`` -> ``[k]``."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    sides = (np.minimum(boxes[:, None, 2:], others[:, 2:]) - low).clip(0)
    area = sides.prod(-1)
    return ((area > 0) * 10.0 + area / 8).sum(1)


def _leader(picture: svg.Element, point: tuple[float, float], box: np.ndarray) -> None:
    """A thin line from a point to its name, where that is not beside it."""
    x, y = (float(np.clip(point[k], box[k] + 2, box[k + 2] - 2)) for k in (0, 1))
    if math.hypot(x - point[0], y - point[1]) > 13:
        svg.add(picture, "path", "leader", d=svg.line([point, (x, y)]))
