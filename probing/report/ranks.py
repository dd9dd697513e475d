"""UUAS against the dimensions of a probe's space, one chart per encoder."""

import math
from collections.abc import Sequence

from hyptrans.support import axes, svg
from probing.probes.probe import KINDS
from probing.report import curves, looks
from probing.report.data import ModelResult, RankPoint
from probing.report.results import TITLES

METRIC = "uuas"


def lines(points: Sequence[RankPoint], look: looks.Look) -> list[curves.Line]:
    """A line for each kind of probe of one encoder: its color, and a form for each."""
    made = []
    for number, probe in enumerate(KINDS):
        own = sorted((p for p in points if p.probe == probe), key=lambda point: point.dimensions)
        if own:
            values = [point.test.get(METRIC, math.nan) for point in own]
            deviations = [point.spread.get(METRIC, math.nan) for point in own]
            kind = f"{look.kind} {probe}"
            shape = looks.mark(number)
            line = curves.Line(probe, kind, shape, values, spread=deviations, within=curves.SHARE)
            made.append(line)
    return made


def draw(
    model: str,
    points: Sequence[RankPoint],
    models: Sequence[ModelResult],
    axis: Sequence[float],
) -> svg.Element:
    """The chart of one encoder, baselines without layers across it.

    Args:
        model: its name.
        points: its own.
        models: all results.
        axis: ticks upwards, common to all encoders.
    """
    dimensions = sorted({point.dimensions for point in points})
    every = lines(points, looks.looks(models)[model])
    for baseline in models:
        value = baseline.test.get(METRIC, math.nan)
        if baseline.role == "baseline" and not math.isnan(value):
            every.append(curves.Line(baseline.name, "base", None, [value], flat=True))
    label = (
        f"{TITLES[METRIC]} against the dimensions of the probe, {model}; the numbers are in the "
        "table below"
    )
    names = [str(number) for number in dimensions]
    across = "dimensions of the probe\u2019s space"
    return curves.plot(every, f"{TITLES[METRIC]}, {model}", across, label, names=names, axis=axis)


def axis_of(points: Sequence[RankPoint], models: Sequence[ModelResult]) -> list[float]:
    """Ticks that all encoders' values fit in, with their deviations, and the baselines."""
    found = [point.test.get(METRIC, math.nan) for point in points]
    spread = [point.spread.get(METRIC, math.nan) for point in points]
    values = curves.reach(found, spread, curves.SHARE)
    flat = [model.test.get(METRIC, math.nan) for model in models if model.role == "baseline"]
    if not values:
        return []
    values += curves.reach(flat)
    return axes.ticks(min(values), max(values))
