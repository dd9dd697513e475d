"""Learning curves and scores of the final trainings as SVG; the same results, the same bytes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hyptrans.evaluation.charts import Curve, Panel, Row, learning_curves, scores
from recipes.study.findings.finals import Line, finished
from recipes.study.findings.table import BARS, CURVES, spread

SHOWN = 4.0
"""The axis of perplexities ends at this times the lowest, so that the ends can be told apart."""


def pictures(lines: Sequence[Line]) -> dict[str, str]:
    """SVG by file name; none where no final training is finished.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    finals = finished(lines)
    if not finals:
        return {}
    perplexity = "Validation perplexity by update, final trainings"
    curves = [curve_of(model, found) for model, found in finals.items()]
    panel = Panel(f"{perplexity}, logarithmic", curves, logarithmic=True, most=SHOWN)
    bleu = "BLEU on test_2016_flickr, final trainings, each seed a dot"
    rows = [
        Row(model, [float(line["bleu"]) for line in found], spread(found, "bleu"))
        for model, found in finals.items()
    ]
    drawn = {CURVES: learning_curves([panel], perplexity), BARS: scores(rows, bleu)}
    return {name: picture.decode() for name, picture in drawn.items()}


def curve_of(model: str, found: Sequence[Line]) -> Curve:
    """Mean over the seeds of a model, between the lowest and the highest, where all have one."""
    by_seed = [dict(line["curve"]) for line in found]
    updates = sorted(set.intersection(*map(set, by_seed)))
    values = [[curve[update] for curve in by_seed] for update in updates]
    means = [statistics.mean(of) for of in values]
    band = [(min(of), max(of)) for of in values] if len(found) > 1 else []
    return Curve(model, list(zip(updates, means, strict=True)), band)
