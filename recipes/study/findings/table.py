"""The study's results as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hyptrans.support import tables
from recipes.common import results, scoring
from recipes.study.findings.finals import (
    Line,
    Setting,
    chosen,
    scored,
    settings,
    updates_until_twin,
)
from recipes.study.plan import DROPOUT, TWINS, WIDTHS, of_width, perplexity_of

CURVES, BARS, BY_WIDTH = "findings/curves.svg", "findings/bleu.svg", "findings/widths.svg"
"""The pictures, as seen from the README."""
SCORES = {"bleu": "BLEU", "chrf": "chrF", "bleu_lowercased": "BLEU, lower-cased tokens"}
_MEASURES = ("parameters", "valid perplexity", *SCORES.values())
_ROUNDED = 0.0051
"""BLEU by which two scores of the same translations may differ, as both are rounded."""
_STAGES = {
    "published": "The published baseline's size",
    "lowercased": "The published baseline's size and text, scored without case",
    "candidates": "Candidates",
    "rates": "Rates",
    **{stage: f"Width {width}" for stage, (width, _) in WIDTHS.items()},
}
"""What is run once each, and the titles of its tables."""


def table(lines: Sequence[Line]) -> str:
    """Tables of final trainings, their comparisons, candidates and rates, where there are some."""
    blocks = [*_finals(lines), *_comparisons(lines)]
    if narrow := widths(lines):
        picture = f"![Validation perplexity by width, each seed a dot]({BY_WIDTH})"
        blocks += ["Small widths, each model at its best rate:", narrow, picture]
    for stage, title in _STAGES.items():
        blocks += _tried(lines, stage, title)
    trainings = [line for line in lines if line["stage"] != "comparison"]
    if signed := scored(trainings):
        # each once, in the order of the scores
        found = dict.fromkeys(
            f"`{line[f'{name}_signature']}`" for name in SCORES for line in signed
        )
        blocks.append(f"sacreBLEU: {', '.join(found)}")
    return "\n\n".join(blocks) or results.NOT_MEASURED


def summary(lines: Sequence[Line]) -> str:
    """The final trainings of each model with the rate and the dropout that are best for it."""
    with_twin = [line for line in _compared(lines) if line["baseline"] in TWINS]
    compared = {line["trainings"][0]: line for line in with_twin}
    rows, tested = [], []
    for setting in chosen(lines).values():
        if not setting.finished:
            continue
        names = [line.get("name") for line in setting.finished]
        found = [compared[name] for name in names if name in compared]
        tested += found
        row = _final_row(setting)[: -len(SCORES)]
        for metric in ("bleu", "chrf"):
            p = ", ".join(f"{line['scores'][metric]['p']:.3f}" for line in found)
            row.append(spread(setting.finished, metric) + (f" ({p})" if p else ""))
        rows.append(row)
    if not rows:
        return results.NOT_MEASURED
    header = ("model", "rate", "dropout", "seeds", *_MEASURES[:2], "BLEU", "chrF")
    table = tables.markdown(header, rows)
    if not tested:
        return table
    about = scoring.about(tested[0]["baseline"], tested[0]["signatures"].values())
    notes = [
        f"{about[0].upper()}{about[1:]}; one number for each seed that is compared, from the first",
        "Models without are not compared yet",
        *_trained_again(lines, tested),
    ]
    return f"{table}\n\n{'. '.join(notes)}"


def widths(lines: Sequence[Line]) -> str:
    """Models at small widths over seeds, the lowest perplexity first; empty without results."""
    rows = []
    for stage, (width, models) in WIDTHS.items():
        found: list[Setting] = []
        for model in models:
            chosen = of_width(lines, stage, model)
            if finished := scored(chosen):
                found.append(Setting(model, finished[0]["rate"], DROPOUT, tuple(chosen)))
        for one in sorted(found, key=lambda one: one.perplexity):
            name, shown, _, *measured = _final_row(one)
            rows.append([width, name, shown, *measured[:-1]])
    header = ("width", "model", "rate", "seeds", *_MEASURES[:-1])
    return tables.markdown(header, rows, texts=2) if rows else ""


def forms(lines: Sequence[Line]) -> str:
    """Forms that were tried in short trainings, over seeds, the lowest mean perplexity first."""
    found: dict[tuple[str, float], list[Line]] = {}
    for line in lines:
        found.setdefault((line["form"], line["rate"]), []).append(line)
    tried = sorted(found.items(), key=lambda one: statistics.fmean(map(perplexity_of, one[1])))
    rows = [
        [form, f"{rate:g}", len(of), f"{of[0]['parameters']:,}", spread(of, "valid_perplexity")]
        for (form, rate), of in tried
    ]
    return tables.markdown(("form", "rate", "seeds", *_MEASURES[:2]), rows)


def _compared(lines: Sequence[Line]) -> list[Line]:
    """Comparisons of what is chosen; what was, before a better setting was found, is not shown."""
    shown = {line.get("name") for setting in chosen(lines).values() for line in setting.lines}
    return [
        line
        for line in lines
        if line["stage"] == "comparison" and shown.issuperset(line["trainings"])
    ]


def _finals(lines: Sequence[Line]) -> list[str]:
    found = settings(lines)
    if not found:
        return []
    header = ("model", "rate", "dropout", "seeds", *_MEASURES)
    blocks = [
        f"Final trainings, {found[0].lines[0]['updates']:,} updates; where there are several "
        "seeds, mean ± standard deviation:",
        tables.markdown(header, [_final_row(one) for one in found]),
        updates_until_twin(lines),
    ]
    if any(setting.finished for setting in found):
        blocks.append(f"![Validation perplexity of the final trainings by update]({CURVES})")
        blocks.append(f"![BLEU of the final trainings, each seed a dot]({BARS})")
    return list(filter(None, blocks))


def _final_row(setting: Setting) -> list[object]:
    lost = len(setting.lines) - len(setting.finished)
    seeds = f"{len(setting.lines)}, {lost} diverged" if lost else str(len(setting.lines))
    asked = [setting.model, f"{setting.rate:g}", f"{setting.dropout:g}", seeds]
    return [*asked, *(_measured(setting.finished) or [None] * len(_MEASURES))]


def _measured(finished: Sequence[Line]) -> list[object]:
    """Cells for ``_MEASURES``, none where no training is finished."""
    if not finished:
        return []
    spreads = [spread(finished, key) for key in ("valid_perplexity", *SCORES)]
    return [f"{finished[0]['parameters']:,}", *spreads]


def spread(found: Sequence[Line], key: str) -> str:
    """Mean of a measure, and its standard deviation where there are several trainings."""
    decimals = 2 if key == "valid_perplexity" else 1
    return results.spread([float(line[key]) for line in found], decimals)


def _comparisons(lines: Sequence[Line]) -> list[str]:
    found = _compared(lines)
    if not found:
        return []
    found.sort(key=lambda line: (line["model"], line["baseline"], line["seed"]))
    header = ["model", "against", "seed"]
    for name in ("BLEU", "chrF"):
        header += [name, "difference", "p"]
    rows = []
    for line in found:
        row: list[object] = [line["model"], line["baseline"], line["seed"]]
        for score in (line["scores"]["bleu"], line["scores"]["chrf"]):
            difference = score["model"] - score["baseline"]
            row += [f"{score['model']:.1f}", f"{difference:+.1f}", f"{score['p']:.3f}"]
        rows.append(row)
    signatures = ", ".join(f"`{name}`" for name in found[0]["signatures"].values())
    return [
        "Final trainings of the same seed; p: of the difference by the choice of sentences alone "
        "(sacreBLEU's paired bootstrap: one-sided, not corrected):",
        tables.markdown(header, rows),
        *_trained_again(lines, found),
        f"sacreBLEU: {signatures}",
    ]


def _trained_again(lines: Sequence[Line], found: Sequence[Line]) -> list[str]:
    """A sentence where what was compared are not the translations that the tables score."""
    scored_at = {line.get("name"): line.get("bleu") for line in lines}
    others: dict[str, list[str]] = {}
    for line in found:
        for name, side in zip(line["trainings"], ("model", "baseline"), strict=True):
            compared, there = line["scores"]["bleu"].get(side), scored_at.get(name)
            if compared is None or there is None or abs(compared - there) < _ROUNDED:
                continue
            words = f"{name.removeprefix('final-')} of {compared:.2f} BLEU, not {there:.2f}"
            others.setdefault(words, []).append(line["model"])
    return [
        f"The comparisons of {', '.join(models)} are with a second training by the same command, "
        f"{words}"
        for words, models in others.items()
    ]


def _tried(lines: Sequence[Line], stage: str, title: str) -> list[str]:
    blocks = []
    tried = sorted((line for line in lines if line["stage"] == stage), key=perplexity_of)
    diverged = [None, "diverged", *[None] * len(SCORES)]
    for updates in sorted({line["updates"] for line in tried}, reverse=True):
        rows = []
        for line in (line for line in tried if line["updates"] == updates):
            dropout = line.get("dropout", DROPOUT)
            asked = [line["model"], f"{line['rate']:g}", f"{dropout:g}", line["seed"]]
            rows.append([*asked, *(_measured(scored([line])) or diverged)])
        header = ("model", "rate", "dropout", "seed", *_MEASURES)
        blocks.append(f"{title}, {updates:,} updates, one run a row:")
        blocks.append(tables.markdown(header, rows))
    return blocks
