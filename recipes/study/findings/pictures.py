"""Learning curves and scores of the final trainings as SVG; the same results, the same bytes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from hyptrans.evaluation.charts import Curve, Panel, Row, learning_curves, scores
from recipes.study.findings.finals import Line, finished
from recipes.study.findings.table import BARS, BY_WIDTH, CURVES, spread
from recipes.study.plan import WIDTH, WIDTHS, of_width, perplexity_of

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
    if narrow := of_widths(lines):
        title = "Validation perplexity by width after 600 updates, each seed a dot"
        sizes = sorted({width for curve in narrow for width, _ in curve.dots})
        panel = Panel(title, narrow, logarithmic=True, sizes=sizes, below="width")
        drawn[BY_WIDTH] = learning_curves([panel], title)
    return {name: picture.decode() for name, picture in drawn.items()}


def of_widths(lines: Sequence[Line]) -> list[Curve]:
    """Of each model that is trained at more than one width, at its best rate of each.

    Those that diverged have no place in the picture.
    """
    found: dict[str, dict[int, list[float]]] = {}
    for stage, (width, models) in WIDTHS.items():
        for model in models:
            found.setdefault(model, {})[width] = _finite(of_width(lines, stage, model))
    for model, widths in found.items():
        short = [x for x in lines if x["stage"] in ("rates", "candidates") and x["model"] == model]
        widths[WIDTH] = sorted(_finite(short))[:1]
    curves = []
    for model, widths in sorted(found.items()):
        means = [(width, statistics.fmean(values)) for width, values in widths.items() if values]
        dots = [(width, value) for width, values in widths.items() for value in values]
        curves += [Curve(model, means, dots=dots)] if len(means) > 1 else []
    return curves


def _finite(lines: Sequence[Line]) -> list[float]:
    return [value for value in map(perplexity_of, lines) if math.isfinite(value)]


def curve_of(model: str, found: Sequence[Line]) -> Curve:
    """Mean over the seeds of a model, between the lowest and the highest, where all have one."""
    by_seed = [dict(line["curve"]) for line in found]
    updates = sorted(set.intersection(*map(set, by_seed)))
    values = [[curve[update] for curve in by_seed] for update in updates]
    means = [statistics.mean(of) for of in values]
    band = [(min(of), max(of)) for of in values] if len(found) > 1 else []
    return Curve(model, list(zip(updates, means, strict=True)), band)
