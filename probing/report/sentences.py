"""Draw the page's example sentences: their trees and disks."""

import math
from collections.abc import Iterator
from typing import Any

from probing.report import arcs, disk, layout
from probing.report.data import Example, Prediction, Report


def example_figures(report: Report) -> Iterator[dict[str, Any]]:
    """Yield each sentence with a tree and a disk for each model that predicts it."""
    for example in report.examples:
        models = [
            _one(example, model.name, example.predictions[model.name])
            for model in report.models
            if model.name in example.predictions
        ]
        yield {"words": example.words, "text": " ".join(example.words), "models": models}


def _one(example: Example, name: str, prediction: Prediction) -> dict[str, Any]:
    """Return the pictures of one sentence and one model."""
    laid = disk.lay_out(example, prediction)
    return {
        "name": name,
        "score": arcs.score(example, prediction).words,
        "tree": arcs.draw(example, prediction, name),
        "disk": disk.draw(example, prediction, name, laid) if laid else None,
        "note": _disk_note(example, prediction, laid) if laid else "",
    }


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
