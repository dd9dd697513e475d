"""Learning curves and scores of the final trainings as SVG; the same results, the same bytes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hyptrans.evaluation.charts import Curve, Panel, Row, learning_curves, scores
from recipes.study.findings.finals import Line, finished
from recipes.study.findings.table import BARS, BY_WIDTH, CURVES, spread
from recipes.study.plan import WIDTH, WIDTHS

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
    """Of each model that is trained at more than one, at the rate that is best with one seed."""
    stages = {stage: width for stage, (width, _) in WIDTHS.items()}
    stages |= dict.fromkeys(("rates", "candidates"), WIDTH)
    found: dict[str, dict[int, dict[float, list[float]]]] = {}
    for line in sorted(lines, key=lambda line: line.get("seed", 0)):
        if line["stage"] in stages and line["valid_perplexity"]:
            of_width = found.setdefault(line["model"], {}).setdefault(stages[line["stage"]], {})
            of_width.setdefault(line["rate"], []).append(float(line["valid_perplexity"]))
    curves = []
    for model, widths in sorted(found.items()):
        best = {width: min(of.values(), key=lambda one: one[0]) for width, of in widths.items()}
        means = sorted((width, statistics.fmean(values)) for width, values in best.items())
        dots = [(width, value) for width, values in sorted(best.items()) for value in values]
        curves += [Curve(model, means, dots=dots)] if len(means) > 1 else []
    return curves


def curve_of(model: str, found: Sequence[Line]) -> Curve:
    """Mean over the seeds of a model, between the lowest and the highest, where all have one."""
    by_seed = [dict(line["curve"]) for line in found]
    updates = sorted(set.intersection(*map(set, by_seed)))
    values = [[curve[update] for curve in by_seed] for update in updates]
    means = [statistics.mean(of) for of in values]
    band = [(min(of), max(of)) for of in values] if len(found) > 1 else []
    return Curve(model, list(zip(updates, means, strict=True)), band)
