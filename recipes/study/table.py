"""Write the study's results as Markdown."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pandas as pd

from recipes.common import results, seeds
from recipes.common.corpus import signatures
from recipes.common.results import Results, markdown, rate, with_values
from recipes.common.scoring import TOKENS, Column
from recipes.study.plan import AVERAGED, DROPOUT, TWINS, WIDTHS, is_open, perplexity_of

CURVES, SCORED, WIDE = "findings/curves.svg", "findings/bleu.svg", "findings/widths.svg"
NORMS = "findings/norms.svg"
"""Paths of the pictures, relative to the README."""
SCORES = (
    Column("bleu", "BLEU", 5),
    Column("chrf", "chrF", 5, "chrf"),
    Column("bleu_lowercased", "BLEU, lower-cased tokens", 5, TOKENS),
)
_FORMS = {"parameters": ",.0f", "valid perplexity": ".2f", "p": ".3f"}
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
    lines: Results

    @property
    def finished(self) -> Results:
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


def settings(lines: Results, stage: str) -> list[Setting]:
    """Return a stage's settings, sorted from the longest trainings, then from the best."""
    trained: dict[tuple[str, float, float, int], list[Mapping[str, Any]]] = {}
    for line in sorted(with_values(lines, stage=stage), key=itemgetter("seed")):
        key = (line["model"], line["rate"], line.get("dropout", DROPOUT), line["updates"])
        trained.setdefault(key, []).append(line)
    made = [Setting(stage, *key, several) for key, several in trained.items()]
    # if all diverged, sort by name, so that the order of the results does not matter
    return sorted(made, key=lambda one: (-one.updates, one.perplexity, one.model, one.dropout))


def chosen(lines: Results) -> dict[str, Setting]:
    """Return each model's final setting: the plan's best one by the first seed.

    On ties, the plan lists first the setting with the higher rate and the lower dropout.
    """
    best: dict[str, Setting] = {}
    finals = settings(lines, "final")
    for one in sorted(finals, key=lambda x: (perplexity_of(x.lines[0]), -x.rate, x.dropout)):
        best.setdefault(one.model, one)
    return dict(sorted(best.items(), key=lambda item: (item[1].perplexity, item[0])))


def table(lines: Results) -> str:
    """Write a table for each stage, with pictures."""
    blocks: list[str] = []
    for stage, title in _STAGES.items():
        found = settings(lines, stage)
        for updates in sorted({one.updates for one in found}, reverse=True):
            rows = [_row(one, lines) for one in found if one.updates == updates]
            blocks += [f"{title}, {updates:,} updates:", markdown(pd.DataFrame(rows), _FORMS)]
        if stage == "final" and any(one.finished for one in found):
            blocks.append(f"![Validation perplexity of the final trainings by update]({CURVES})")
            blocks.append(f"![BLEU of the final trainings, each seed a dot]({SCORED})")
        if stage == AVERAGED:
            blocks += _bootstraps(lines)
        if found and stage == list(WIDTHS)[-1]:
            blocks.append(f"![Validation perplexity by width, each seed a dot]({WIDE})")
    if not blocks:
        return results.NOT_MEASURED
    about = [CAPTION, results.made_by(lines), f"sacreBLEU: {signatures(lines, SCORES)}"]
    return "\n\n".join([*blocks, "; ".join(about)])


CAPTION = "Mean ± standard deviation over seeds; a rate in brackets is not tuned"


def summary(lines: Results) -> str:
    """Write each model's final trainings at its best rate and dropout."""
    best = {model: one for model, one in chosen(lines).items() if one.finished}
    if not best:
        return results.NOT_MEASURED
    twin = next((model for model in best if model in TWINS), "")
    scores = {model: one.values("bleu") for model, one in best.items()}
    p, floors = seeds.against(twin, scores)
    frame = pd.DataFrame([_row(one, lines) for one in best.values()])
    frame = frame.drop(columns=SCORES[-1].title).assign(p=frame["model"].map(p))
    return (
        f"{markdown(frame, _FORMS)}\n\n{CAPTION}; p: two-sided permutation test of "
        f"seeds' BLEU against `{twin}`, Holm-corrected over {len(p)} models"
        f"{seeds.at_least(floors)}; "
        f"{results.made_by([line for one in best.values() for line in one.lines])}"
    )


def _bootstraps(lines: Results) -> list[str]:
    found = pd.DataFrame(with_values(lines, stage="bootstrap"))
    if found.empty:
        return []
    found["95 %"] = ["{:+.2f} to {:+.2f}".format(*interval) for interval in found["interval"]]
    found = found.rename(columns={"twin": "against", "difference": "BLEU"})
    about = "Averages, by a bootstrap of seeds and then of sentences, two-sided, not corrected:"
    columns = found[["model", "against", "BLEU", "95 %", "p"]]
    return [about, markdown(columns, {"BLEU": "+.2f", "p": ".4f"}, texts=2)]


def _row(setting: Setting, lines: Results) -> dict[str, Any]:
    """Return a setting's cells; brackets around a rate mean that another may turn out best."""
    shown = setting.stage in (*WIDTHS, "final", AVERAGED)
    searching = shown and is_open(lines, setting.stage, setting.model)
    lost = len(setting.lines) - len(setting.finished)
    row = {
        "model": setting.model,
        "rate": rate(setting.rate, searching),
        "dropout": f"{setting.dropout:g}",
        "seeds": f"{len(setting.lines)}, {lost} diverged" if lost else len(setting.lines),
        "parameters": setting.finished[0]["parameters"] if setting.finished else None,
    }
    measured = {"valid_perplexity": "valid perplexity", **{one.key: one.title for one in SCORES}}
    return row | {title: setting.values(key) or None for key, title in measured.items()}
