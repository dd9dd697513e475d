"""Write the study's results as Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyptrans.support import tables
from recipes.common import results, seeds
from recipes.study.plan import AVERAGED, DROPOUT, TWINS, WIDTHS, is_open, perplexity_of

Line = Mapping[str, Any]
CURVES, SCORED, WIDE = "findings/curves.svg", "findings/bleu.svg", "findings/widths.svg"
NORMS = "findings/norms.svg"
"""Paths of the pictures, relative to the README."""
SCORES = {"bleu": "BLEU", "chrf": "chrF", "bleu_lowercased": "BLEU, lower-cased tokens"}
_HEADER = ("model", "rate", "dropout", "seeds", "parameters", "valid perplexity", *SCORES.values())
_STAGES = {
    "final": "Final trainings",
    AVERAGED: "Averages of the last five checkpoints",
    **{stage: f"Width {width}" for stage, width in WIDTHS.items()},
    "published": "The published baseline's size",
    "lowercased": "The published baseline's size and text, scored without case",
    "candidates": "Candidates",
    "rates": "Rates",
}
"""Titles of the tables, by stage."""


@dataclass(frozen=True)
class Setting:
    """A model's rate and dropout in a stage, with the trainings by seed."""

    stage: str
    model: str
    rate: float
    dropout: float
    updates: int
    lines: tuple[Line, ...]

    @property
    def finished(self) -> list[Line]:
        """Return the trainings that did not diverge."""
        return [line for line in self.lines if line["valid_perplexity"] is not None]

    @property
    def perplexity(self) -> float:
        """Return the mean over trainings that did not diverge; infinity if all did."""
        finished = [*map(perplexity_of, self.finished)]
        return statistics.fmean(finished) if finished else math.inf

    def values(self, key: str) -> list[float]:
        """Return a measure's value for each training that did not diverge."""
        return [float(line[key]) for line in self.finished]


def settings(lines: Iterable[Line], stage: str) -> list[Setting]:
    """Return a stage's settings, sorted from the longest trainings, then from the best."""
    found: dict[tuple[str, float, float, int], list[Line]] = {}
    for line in sorted(lines, key=lambda line: int(line["seed"])):
        if line["stage"] == stage:
            dropout = line.get("dropout", DROPOUT)
            key = (line["model"], line["rate"], dropout, line["updates"])
            found.setdefault(key, []).append(line)
    made = [Setting(stage, *key, tuple(trained)) for key, trained in found.items()]
    # if all diverged, sort by name, so that the order of the results does not matter
    return sorted(made, key=lambda one: (-one.updates, one.perplexity, one.model, one.dropout))


def chosen(lines: Sequence[Line]) -> dict[str, Setting]:
    """Return each model's final setting: the plan's best one by the first seed.

    On ties, the plan lists first the setting with the higher rate and the lower dropout.
    """
    best: dict[str, Setting] = {}
    for setting in sorted(settings(lines, "final"), key=lambda one: (-one.rate, one.dropout)):
        other = best.get(setting.model)
        if other is None or perplexity_of(setting.lines[0]) < perplexity_of(other.lines[0]):
            best[setting.model] = setting
    return dict(sorted(best.items(), key=lambda item: (item[1].perplexity, item[0])))


def table(lines: Sequence[Line]) -> str:
    """Write a table for each stage, with pictures."""
    blocks: list[str] = []
    for stage, title in _STAGES.items():
        found = settings(lines, stage)
        for updates in sorted({one.updates for one in found}, reverse=True):
            rows = [_row(one, lines) for one in found if one.updates == updates]
            blocks += [f"{title}, {updates:,} updates:", tables.markdown(_HEADER, rows)]
        if stage == "final" and any(one.finished for one in found):
            blocks.append(f"![Validation perplexity of the final trainings by update]({CURVES})")
            blocks.append(f"![BLEU of the final trainings, each seed a dot]({SCORED})")
        if stage == AVERAGED:
            blocks += _bootstraps(lines)
        if found and stage == list(WIDTHS)[-1]:
            blocks.append(f"![Validation perplexity by width, each seed a dot]({WIDE})")
    if not blocks:
        return results.NOT_MEASURED
    signed = dict.fromkeys(
        f"`{x[key]}`" for s in SCORES for x in lines if (key := f"{s}_signature") in x
    )
    about = [CAPTION, results.made_by(lines), f"sacreBLEU: {', '.join(signed)}"]
    return "\n\n".join([*blocks, "; ".join(about)])


CAPTION = "Mean ± standard deviation over seeds; a rate in brackets: its search is open"


def summary(lines: Sequence[Line]) -> str:
    """Write each model's final trainings at its best rate and dropout."""
    best = {model: one for model, one in chosen(lines).items() if one.finished}
    if not best:
        return results.NOT_MEASURED
    twin = next((model for model in best if model in TWINS), "")
    scores = {model: one.values("bleu") for model, one in best.items()}
    p = seeds.against(twin, scores)
    rows = [
        [*_row(one, lines)[:-1], f"{p[model]:.3f}" if model in p else ""]
        for model, one in best.items()
    ]
    return (
        f"{tables.markdown([*_HEADER[:-1], 'p'], rows)}\n\n{CAPTION}; p: of the difference in BLEU "
        f"from `{twin}` by permutation of seeds, two-sided, Holm's correction over {len(p)} models"
        f"{seeds.at_least(seeds.floors(p, twin, scores))}; "
        f"{results.made_by([line for one in best.values() for line in one.lines])}"
    )


def _bootstraps(lines: Sequence[Line]) -> list[str]:
    rows = []
    for line in lines:
        if line["stage"] == "bootstrap":
            interval = "{:+.2f} to {:+.2f}".format(*line["interval"])
            found = f"{line['difference']:+.2f}", interval, f"{line['p']:.4f}"
            rows.append([line["model"], line["twin"], *found])
    header = ["model", "against", "BLEU", "95 %", "p"]
    about = "Averages, by a bootstrap of seeds and then of sentences, two-sided, not corrected:"
    return [about, tables.markdown(header, rows, texts=2)] if rows else []


def _row(setting: Setting, lines: Sequence[Line]) -> list[object]:
    """Return a setting's cells; brackets around a rate mean that another may turn out best."""
    shown = setting.stage in (*WIDTHS, "final", AVERAGED)
    searching = shown and is_open(lines, setting.stage, setting.model)
    rate = f"({setting.rate:g})" if searching else f"{setting.rate:g}"
    lost = len(setting.lines) - len(setting.finished)
    several = f"{len(setting.lines)}, {lost} diverged" if lost else str(len(setting.lines))
    asked = [setting.model, rate, f"{setting.dropout:g}", several]
    if not setting.finished:
        return [*asked, *[None] * (len(SCORES) + 2)]
    scores = [seeds.spread(setting.values(key)) for key in SCORES]
    perplexity = seeds.spread(setting.values("valid_perplexity"), 2)
    return [*asked, f"{setting.finished[0]['parameters']:,}", perplexity, *scores]
