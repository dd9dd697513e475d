"""Draw the study's pictures as SVG; the same results give the same bytes."""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hyptrans.support.extras import require
from recipes.common import seeds
from recipes.common.results import Results, with_values
from recipes.study.plan import RATES, WIDTH, WIDTHS, perplexity_of, rate_search
from recipes.study.table import CURVES, SCORED, WIDE, Setting, chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = {
    **{"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "hyptrans", "axes.axisbelow": True},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True},
    **{"grid.color": "#d6dbe0", "axes.titlelocation": "left", "axes.titlesize": 10},
}
_COLORS = ("#0063a6", "#c24e00", "#00795a", "#9e3d7b", "#846000", "#4d5b6a", "#b3261e", "#5b4bc4")
_MARKS, _DASHES = "os^DvPX", ("-", "--", ":", "-.")
Scores = dict[str, dict[float, list[float]]]
"""Scores of all seeds, by model and by what the horizontal axis of a picture shows."""
_MOST = 4.0
"""The perplexity axis ends at this multiple of the lowest, so that final values stay distinct."""


def pictures(lines: Results) -> dict[str, str]:
    """Draw the pictures; return SVG by file name, or nothing if no final training is finished.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    finals = {model: one for model, one in chosen(lines).items() if one.finished}
    if not finals:
        return {}
    title = "Validation perplexity by update: mean, lowest and highest of the seeds"
    drawn = {
        SCORED: _draw(
            "BLEU on test_2016_flickr: a dot for each seed, a line at the mean", _dots, finals
        ),
        CURVES: _draw(title, _curves, finals),
    }
    if found := by_width(lines):
        title = "Validation perplexity by width after 600 updates, a dot for each seed"
        drawn[WIDE] = _draw(title, _widths, found)
    return drawn


def _draw(title: str, fill: Callable[[Axes, Any], None], found: Mapping[str, Any]) -> str:
    figure_of = require("matplotlib.figure", "plot").Figure
    with require("matplotlib", "plot").rc_context(_STYLE):
        figure = figure_of((7.6, 3.6), layout="constrained")
        axes = figure.add_subplot(title=title)
        fill(axes, found)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        file = io.BytesIO()
        metadata = {"Title": title, "Date": None, "Creator": None}
        figure.savefig(file, format="svg", metadata=metadata)
    return file.getvalue().decode()


def _dots(axes: Axes, finals: Mapping[str, Setting]) -> None:
    """Draw a row of dots for each model, on an axis that starts near the lowest value."""
    for place, setting in enumerate(finals.values()):
        values, color = setting.values("bleu"), _COLORS[place % len(_COLORS)]
        axes.plot(values, [place] * len(values), "o", color=color, alpha=0.7)
        axes.plot([statistics.fmean(values)] * 2, [place - 0.3, place + 0.3], color=color)
        axes.text(
            1.02, place, seeds.spread(values), transform=axes.get_yaxis_transform(), va="center"
        )
    axes.set_yticks(range(len(finals)), list(finals))
    axes.invert_yaxis()


def _curves(axes: Axes, finals: Mapping[str, Setting]) -> None:
    ends = []
    for place, (model, setting) in enumerate(finals.items()):
        by_seed = [dict(line["curve"]) for line in setting.finished]
        updates = sorted(set.intersection(*map(set, by_seed)))
        values = [[curve[update] for curve in by_seed] for update in updates]
        color, dashes = _COLORS[place % len(_COLORS)], _DASHES[place // len(_COLORS)]
        means = [statistics.fmean(of) for of in values]
        axes.plot(updates, means, dashes, color=color, label=model)
        lowest, highest = [*map(min, values)], [*map(max, values)]
        axes.fill_between(updates, lowest, highest, color=color, alpha=0.2, linewidth=0)
        ends += means
    axes.set(xlabel="updates", yscale="log", ylim=(0.97 * min(ends), _MOST * min(ends)))
    _scale(axes)


def by_place(points: Iterable[tuple[str, float, float]]) -> Scores:
    """Collect scores that come with their model and their place on the horizontal axis."""
    found: Scores = {}
    for model, place, score in points:
        found.setdefault(model, {}).setdefault(place, []).append(score)
    return found


def by_width(lines: Results) -> Scores:
    """Return perplexities by model and width at the best rates, for models with several widths.

    Leaves out trainings that diverged.
    """
    points = [
        (model, width, perplexity)
        for stage, width in WIDTHS.items()
        for model in RATES[stage]
        if (best := rate_search(lines, stage, model).best)
        for perplexity in _finite(with_values(lines, stage=stage, model=model, rate=best.rate))
    ]
    for model in {model for model, *_ in points}:
        short = [x for one in ("rates", "candidates") for x in with_values(lines, stage=one)]
        points += [(model, WIDTH, x) for x in sorted(_finite(with_values(short, model=model)))[:1]]
    return {model: of for model, of in sorted(by_place(points).items()) if len(of) > 1}


def _finite(lines: Results) -> list[float]:
    return [value for value in map(perplexity_of, lines) if math.isfinite(value)]


def norms(lines: Results) -> str:
    """Draw the lines of :mod:`recipes.study.norms` as SVG."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        found.setdefault(f"{line['layer']}; {line['optimizer']}", []).append(line)
    return _draw("Mean radius of a layer's outputs by step, mean of the seeds", _norms, found)


def _norms(axes: Axes, found: Mapping[str, Results]) -> None:
    layers = list(dict.fromkeys(line["layer"] for of in found.values() for line in of))
    for name, of in found.items():
        # some runs end early because a number is no longer finite
        points = [*zip(*(line["radii"] for line in of), strict=False)]
        means = [statistics.fmean(radius for _, radius in several) for several in points]
        color, dashes = _COLORS[layers.index(of[0]["layer"])], "--" if "SGD" in name else "-"
        axes.plot([several[0][0] for several in points], means, dashes, color=color, label=name)
    axes.set(xlabel="steps")


def dots(found: Scores, title: str, about: str, scale: str = "log") -> str:
    """Draw a dot for each score, and for each model a line through its means, as SVG.

    Args:
        found: scores by model and place on the horizontal axis.
        title: title of the picture.
        about: what the horizontal axis shows.
        scale: ``log`` or ``linear``, the scale of that axis.
    """
    return _draw(title, partial(_dots_over, about=about, scale=scale), found)


def _widths(axes: Axes, found: Scores) -> None:
    _dots_over(axes, found, "width", "log")
    axes.set(yscale="log")
    _scale(axes)


def _dots_over(axes: Axes, found: Scores, about: str, scale: str) -> None:
    for index, (model, scores) in enumerate(found.items()):
        color, mark = _COLORS[index % len(_COLORS)], _MARKS[index % len(_MARKS)]
        means = [statistics.fmean(values) for values in scores.values()]
        axes.plot([*scores], means, f"{mark}-", color=color, label=model)
        for place, values in scores.items():
            axes.plot([place] * len(values), values, ".", color=color, alpha=0.6)
    axes.set(xlabel=about, xscale=scale)
    axes.set_xticks(sorted({place for scores in found.values() for place in scores}))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()


def _scale(axes: Axes) -> None:
    """Put plain numbers on the logarithmic axis."""
    ticker = require("matplotlib.ticker", "plot")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(ticker.NullLocator())
