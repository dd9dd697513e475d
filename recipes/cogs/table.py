"""The tables of the results on COGS, beside a published Transformer's figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

from hyptrans.support.tables import markdown
from recipes.cogs.plan import DEV, FINAL_UPDATES, GEN, PER_KIND, SPACES, TEST, trainings
from recipes.common import results
from recipes.common.exact import Results
from recipes.common.grid import against_twin, by_chance, by_model
from recipes.common.results import spread

PUBLISHED = "published"
"""Name of the line of a published Transformer: of each seed, percent of right answers by kind,
``lex_acc`` of all kinds not named, and ``overall_acc``."""
_OTHERS, _ALL = "lex_acc", "overall_acc"
_OF_A_KIND = 1000
"""Sentences of each kind in the generalization set."""


def table(lines: Results) -> str:
    """All results as Markdown."""
    finals, published = _finals(lines), _published(lines)
    trials = [line for line in lines if line["stage"] not in ("final", PUBLISHED)]
    parts = [means(lines), _kinds(finals, published)] if finals else []
    parts += [shown] if (shown := spaces(lines)) else []
    parts += [_trials(trials)] if trials else []
    return "\n\n".join(parts) or results.NOT_MEASURED


def unread(line: Mapping[str, Any]) -> float:
    """Percent of right answers among the sentences that no setting was chosen by."""
    whole, part = _of(line, GEN), _of(line, DEV)
    return float(whole * _OF_A_KIND - part * PER_KIND) / (_OF_A_KIND - PER_KIND)


def _of(line: Mapping[str, Any], subset: str, kind: str = "all") -> float:
    """Percent of right answers; a training that diverged has none."""
    return float(line["exact"][subset][kind]) if line["exact"] else 0.0


def _finals(lines: Results, stage: str = "final") -> Results:
    """The long trainings of a stage, at the rates and settings that are best now."""
    names = {
        one.name for one in trainings(lines) if (one.stage, one.updates) == (stage, FINAL_UPDATES)
    }
    return [line for line in lines if line["name"] in names]


def _published(lines: Results) -> Results:
    return next((line["seeds"] for line in lines if line["name"] == PUBLISHED), [])


def means(lines: Results) -> str:
    """Final trainings over seeds, of each model."""
    finals, published = _finals(lines), _published(lines)
    if not finals:
        return results.NOT_MEASURED
    gen = by_model(finals, partial(_of, subset=GEN))
    rest = by_model(finals, unread)
    test = by_model(finals, partial(_of, subset=TEST))
    p = against_twin(rest)
    line_of = {line["model"]: line for line in sorted(finals, key=lambda one: bool(one["exact"]))}
    rows = [
        [
            model,
            f"{line_of[model]['parameters']:,}" if line_of[model]["exact"] else "",
            f"{line_of[model]['rate']:g}",
            str(len(gen[model])),
            spread(gen[model]),
            spread(rest[model]),
            f"{p[model]:.3f}" if model in p else "",
            spread(test[model]),
        ]
        for model in gen
    ]
    of_published = [seed[_ALL] for seed in published]
    if published:
        rows.append([PUBLISHED, "", "", str(len(published)), spread(of_published), "", "", ""])
    header = ["model", "parameters", "rate", "seeds", "all of gen", "unread part", "p", "test"]
    updates = finals[0]["updates"]
    return (
        f"{markdown(header, rows)}\n\nPercent of exact matches after {updates:,} updates, "
        f"`{finals[0]['setting']}`, mean ± standard deviation over seeds; unread part: without the "
        "sentences that settings are chosen by; p: of the difference from the twin there, by "
        "permutation of seeds, two-sided, Holm's correction over the models of the table."
    )


def _kinds(finals: Results, published: Results) -> str:
    kinds = {kind for line in finals if line["exact"] for kind in line["exact"][GEN]} - {"all"}
    models = list(by_model(finals, lambda line: 0.0))
    named = sorted(kind for kind in kinds if published and kind in published[0])
    rows = []
    for kind in [*named, *sorted(kinds.difference(named))]:
        found = by_model(finals, partial(_of, subset=GEN, kind=kind))
        theirs = spread([seed[kind] for seed in published]) if kind in named else ""
        rows.append([kind, *(spread(found[model]) for model in models), theirs])
    shown = markdown(["kind", *models, PUBLISHED], rows)
    if not published:
        return shown
    lexical = statistics.fmean(seed[_OTHERS] for seed in published)
    return f"{shown}\n\nPublished: {lexical:.1f} on average in the kinds without a figure."


def spaces(lines: Results) -> str:
    """``hybonet_plus`` with other curvatures, as often trained on; empty without results."""
    found = {"learned": [x for x in _finals(lines) if x["model"] == "hybonet_plus"]}
    for line in _finals(lines, "curvature"):
        found.setdefault(line["setting"].rpartition("+")[2], []).append(line)
    found = {space: of for space, of in found.items() if len(of) > 1}
    if len(found) < 2 or "learned" not in found:
        return ""
    scores = {space: [_of(line, DEV) for line in of] for space, of in found.items()}
    rows = []
    for space, values in scores.items():
        p = "" if space == "learned" else f"{by_chance(values, scores['learned']):.3f}"
        rows.append([space, f"{found[space][0]['rate']:g}", len(values), spread(values), p])
    return (
        f"{markdown(['curvature', 'rate', 'seeds', DEV, 'p'], rows)}\n\n`hybonet_plus` after "
        f"{FINAL_UPDATES:,} updates; flat: -{SPACES['flat']['--curvature']}, not learned; p: of "
        "the difference from learned curvatures, by permutation of seeds, two-sided."
    )


def _trials(trials: Results) -> str:
    rows = [
        [
            line["stage"],
            line["model"],
            line["setting"],
            f"{line['rate']:g}",
            f"{line['updates']:,}",
            str(line["seed"]),
            f"{line['curve'][-1][1]:.4f}" if line["curve"] else "diverged",
            f"{_of(line, DEV):.1f}" if line["exact"] else "",
            f"{line['updates_per_second'] or 0:.1f}",
        ]
        for line in trials
    ]
    header = [
        "stage",
        "model",
        "setting",
        "rate",
        "updates",
        "seed",
        "valid perplexity",
        DEV,
        "updates/s",
    ]
    return (
        f"{markdown(header, rows)}\n\nTrials; {DEV}: percent of exact matches on {PER_KIND} "
        "sentences of each kind of generalization; updates/s on a core that other programs use too."
    )
