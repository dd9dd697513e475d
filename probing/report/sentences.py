"""Draw the page's example sentences: their trees and disks, and tables of their numbers."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import coo_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import breadth_first_order  # type: ignore[import-untyped]

from probing.report import arcs, disk, layout
from probing.report.charts import NOTHING, figure_number, in_order
from probing.report.data import Edge, Example, Prediction, Report


def example_figures(report: Report) -> Iterator[dict[str, Any]]:
    """Yield each sentence with a tree and a disk for each model that predicts it."""
    for example in report.examples:
        models = [
            _one(example, name, example.predictions[name])
            for name in in_order(report, example.predictions)
        ]
        yield {"words": example.words, "text": " ".join(example.words), "models": models}


def model_names(report: Report) -> list[str]:
    """Return the models that predict any sentence, in the order of the report."""
    names = {name for example in report.examples for name in example.predictions}
    return in_order(report, sorted(names))


def heads(edges: list[Edge], root: int, count: int) -> list[int | None]:
    """Return each word's head in the tree rooted at ``root``: -1 there, None outside the tree."""
    found: list[int | None] = [None] * count
    if 0 <= root < count:
        rows, columns = np.array(edges, int).reshape(-1, 2).T
        graph = coo_array((np.ones(len(edges)), (rows, columns)), (count, count)).tocsr()
        reached, above = breadth_first_order(graph, root, directed=False)
        for word in reached.tolist():
            found[word] = -1 if word == root else int(above[word])
    return found


def _one(example: Example, name: str, prediction: Prediction) -> dict[str, Any]:
    """Return the pictures and the table of one sentence and one model."""
    laid = disk.lay_out(example, prediction)
    return {
        "name": name,
        "score": arcs.score(example, prediction).words,
        "tree": arcs.draw(example, prediction, name),
        "table": _word_table(example, prediction, laid),
        "disk": disk.draw(example, prediction, name, laid) if laid else None,
        "note": _disk_note(example, prediction, laid) if laid else "",
    }


def _word_table(
    example: Example, prediction: Prediction, laid: layout.Disk | None
) -> list[tuple[str, ...]]:
    """Return a row for each word: gold and predicted head and depth, and radius in the disk."""
    count = len(example.words)
    gold = heads(example.gold_edges, example.gold_root, count)
    predicted = heads(prediction.edges, prediction.root, count)

    def named(head: int | None) -> str:
        if head is None:
            return NOTHING
        return "root" if head < 0 else f"{example.words[head]} ({head + 1})"

    table: list[tuple[str, ...]] = []
    for word in range(count):
        depth = prediction.depths[word] if word < len(prediction.depths) else None
        radius = float(laid.radii[word]) if laid else None
        gold_cells = named(gold[word]), str(example.gold_depths[word])
        cells = named(predicted[word]), figure_number(depth), figure_number(radius)
        table.append((f"{example.words[word]} ({word + 1})", *gold_cells, *cells))
    return table


def _disk_note(example: Example, prediction: Prediction, laid: layout.Disk) -> str:
    """Explain how the picture of the disk changes the probe's points."""
    at_root = 0 <= prediction.root < len(example.words)
    center = (
        f"“{example.words[prediction.root]}”" if at_root else "the origin, as no root is predicted"
    )
    note = f"Center: {center}."
    if math.isfinite(laid.agreement):
        note += (
            " How well two dimensions keep the order of the probe's own distances between words: "
            f"{laid.agreement:.2f} (Spearman's rank correlation; 1 would be the same order)."
        )
    if abs(laid.scale - 1) > 1e-9:
        note += f" Radii are drawn {laid.scale:.2g} times their size; the rings tell the true ones."
    return note
