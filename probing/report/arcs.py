"""Draw a sentence with the gold tree as arcs above the words and the predicted tree below."""

import math

from markupsafe import Markup

from probing.report import svg
from probing.report.data import Edge, Example, Prediction

SIDE = 74.0  # room for the names of the two trees, in pixels
SIZE = 15  # font size of the words
GAP = 16  # between words
STEP = 17  # height of a level of arcs
SLOT = 4  # between the ends of arcs at a word
CORNER = 9
WIDEST = 1300.0  # pictures below this width shrink to the page; wider ones scroll
ROOT_HEIGHT = 15


def score(example: Example, prediction: Prediction) -> str:
    """Say how many edges of one sentence are right, without punctuation's, and whether the root."""
    mark = example.punctuation
    gold = {(i, j) for i, j in example.gold_edges if not (mark[i] or mark[j])}
    right = len(gold.intersection(prediction.edges))
    edges = f"{right} of {len(gold)} edges right" if gold else "no edge counts"
    return f"{edges}, root {'right' if prediction.root == example.gold_root else 'wrong'}"


def levels(edges: set[Edge]) -> dict[Edge, int]:
    """Give each arc a level above all arcs that it spans and different from those it crosses."""
    heights: dict[Edge, int] = {}
    for i, j in sorted(edges, key=lambda edge: (edge[1] - edge[0], edge)):
        inner = [h for (a, b), h in heights.items() if i <= a and b <= j]
        crossed = {h for (a, b), h in heights.items() if i < a < j < b or a < i < b < j}
        height = 1 + max(inner, default=0)
        while height in crossed:
            height += 1
        heights[i, j] = height
    return heights


def draw(example: Example, prediction: Prediction, model: str) -> Markup:
    """Draw the picture of one sentence and one model."""
    gold, predicted = set(example.gold_edges), set(prediction.edges)
    centers, width = _spaced(example.words, gold, predicted)
    heights = levels(gold), levels(predicted)
    rise, fall = (ROOT_HEIGHT + STEP * max(h.values(), default=1) + 8 for h in heights)
    under = rise + SIZE + 14  # where the predicted arcs start
    parts = [
        svg.element("text", "side", "gold", x=0, y=rise - 12),
        svg.element("text", "side", "predicted", x=0, y=under + 21),
    ]
    for word, x, gray in zip(example.words, centers, example.punctuation, strict=True):
        kind = "word skip" if gray else "word"
        parts.append(svg.element("text", kind, word, x=x, y=rise + SIZE + 1))
    agreeing = gold & predicted
    root_kind = "good" if prediction.root == example.gold_root else "bad"
    roots = example.gold_root, prediction.root
    for height, root, base, way in zip(heights, roots, (rise, under), (-1, 1), strict=True):
        ends, mark = _slots(set(height), centers, root)
        # draw high arcs first, so that short ones lie on top
        for edge in sorted(height, key=lambda edge: (-height[edge], edge)):
            kind = "good" if edge in agreeing else "bad"
            if any(example.punctuation[word] for word in edge):
                kind = "skip"
            path = _arc(*ends[edge], base, way * height[edge] * STEP)
            parts.append(svg.element("path", f"edge {kind}", d=path))
        if 0 <= root < len(centers):
            # a vertical line to the root, labelled at its outer end
            tip = base + way * (max(height.values(), default=1) * STEP + 6)
            path = svg.line([(mark, base), (mark, tip)])
            parts.append(svg.element("path", f"edge mark {root_kind}", d=path))
            below = tip + (-3 if way < 0 else 11)
            parts.append(svg.element("text", f"root {root_kind}", "root", x=mark, y=below))
    sentence = " ".join(example.words)
    label = f"Gold and predicted tree ({model}) of: {sentence}. {score(example, prediction)}."
    return svg.figure(width, under + fall, label, "arcs fit" if width < WIDEST else "arcs", parts)


def _spaced(words: list[str], gold: set[Edge], predicted: set[Edge]) -> tuple[list[float], float]:
    """Return the words' centers and the line's length; words with many arcs get more room."""
    centers, x = [], SIDE
    for i, word in enumerate(words):
        busy = max(sum(i in edge for edge in edges) for edges in (gold, predicted))
        width = max(svg.text_width(word, SIZE), SLOT * (busy + 1), 10)
        centers.append(x + width / 2)
        x += width + GAP
    return centers, x


def _slots(
    edges: set[Edge], centers: list[float], root: int
) -> tuple[dict[Edge, tuple[float, float]], float]:
    """Return where the two ends of each arc and the root's mark stand; none share a position.

    From left to right at each word: arcs to the left, shortest first; the root's mark; arcs to the
    right, longest first. This order draws no crossing that the tree does not have.
    """
    places: dict[tuple[Edge, int], float] = {}
    mark = 0.0
    for word, center in enumerate(centers):
        left = sorted((edge for edge in edges if edge[1] == word), reverse=True)
        right = sorted((edge for edge in edges if edge[0] == word), reverse=True)
        count = len(left) + len(right) + (word == root)
        slots = [center + SLOT * (place - (count - 1) / 2) for place in range(count)]
        if word == root:
            mark = slots.pop(len(left))
        ends = [(edge, 1) for edge in left] + [(edge, 0) for edge in right]
        places.update(zip(ends, slots, strict=True))
    return {edge: (places[edge, 0], places[edge, 1]) for edge in edges}, mark


def _arc(x0: float, x1: float, base: float, rise: float) -> str:
    """Return the path from one word to another: up, around a corner, along, and down again."""
    corner, high = min(CORNER, (x1 - x0) / 2), base + rise
    turn = high + math.copysign(CORNER, -rise)
    up = f"M{x0:.1f} {base:.1f}V{turn:.1f}Q{x0:.1f} {high:.1f} {x0 + corner:.1f} {high:.1f}"
    return f"{up}H{x1 - corner:.1f}Q{x1:.1f} {high:.1f} {x1:.1f} {turn:.1f}V{base:.1f}"
