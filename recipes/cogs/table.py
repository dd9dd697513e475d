"""Write the tables of the results on COGS, beside a published Transformer's figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

from hyptrans.support.tables import markdown
from recipes.cogs.plan import (
    DEV,
    FINAL_UPDATES,
    GEN,
    PER_KIND,
    SPACES,
    TEST,
    finals,
    rates,
)
from recipes.common import results, seeds
from recipes.common.exact import TWINS, Results, right
from recipes.common.grid import by_model

PUBLISHED = "published"
"""Name of a published Transformer's line: for each seed, percent of right answers by kind,
``lex_acc`` over all kinds not listed, and ``overall_acc``."""
_OTHERS, _ALL = "lex_acc", "overall_acc"
LEAST_SEEDS = 3
"""Fewest seeds of the twin for comparison, if at least one twin has this many."""
TESTED = "hybonet_plus"
"""The model whose kinds of generalization are compared with the twin's."""
_OF_A_KIND = 1000
"""Sentences of each kind in the generalization set."""


def table(lines: Results) -> str:
    """Write all results as Markdown."""
    trials = [line for line in lines if line["stage"] not in ("final", PUBLISHED)]
    parts = [means(lines), _kinds(lines)] if finals(lines) else []
    parts += [spaces(lines), _trials(trials) if trials else ""]
    return "\n\n".join(filter(None, parts)) or results.NOT_MEASURED


def unread(line: Mapping[str, Any], kind: str = "all") -> float:
    """Return the percent of right answers on the sentences that chose no setting."""
    whole, part = right(line, GEN, kind), right(line, DEV, kind)
    return float(whole * _OF_A_KIND - part * PER_KIND) / (_OF_A_KIND - PER_KIND)


def _published(lines: Results) -> Results:
    return next((line["seeds"] for line in lines if line["name"] == PUBLISHED), [])


def _twin(found: Results) -> str:
    """Return the baseline Transformer that is better on the sentences that choose settings."""
    dev = by_model(found, partial(right, subset=DEV))
    trained = [model for model in TWINS if model in dev]
    several = [model for model in trained if len(dev[model]) >= LEAST_SEEDS] or trained
    return max(several, key=lambda model: statistics.fmean(dev[model]), default="")


def means(lines: Results) -> str:
    """Write the table of each model's final trainings, averaged over seeds."""
    found, published = finals(lines), _published(lines)
    if not found:
        return results.NOT_MEASURED
    gen, rest = by_model(found, partial(right, subset=GEN)), by_model(found, unread)
    test, twin = by_model(found, partial(right, subset=TEST)), _twin(found)
    p = seeds.against(twin, rest)
    line_of = {line["model"]: line for line in sorted(found, key=lambda one: bool(one["exact"]))}
    rows = []
    for model in gen:
        line, rate = line_of[model], f"{line_of[model]['rate']:g}"
        is_open = rates(lines, model).is_open
        row = [model, f"{line['parameters']:,}" if line["exact"] else ""]
        row += [f"({rate})" if is_open else rate, str(len(gen[model]))]
        row += [seeds.spread(gen[model]), seeds.spread(rest[model])]
        rows.append([*row, f"{p[model]:.3f}" if model in p else "", seeds.spread(test[model])])
    if published:
        overall = seeds.spread([seed[_ALL] for seed in published])
        rows.append([PUBLISHED, "", "", str(len(published)), overall, "", "", ""])
    header = ["model", "parameters", "rate", "seeds", "all of gen", "unread part", "p", "test"]
    return (
        f"{markdown(header, rows)}\n\nPercent of exact matches after {found[0]['updates']:,} "
        f"updates, `{found[0]['setting']}`, mean ± standard deviation over seeds; unread part: "
        f"without the sentences that settings are chosen by; p: of the difference from `{twin}` "
        "there, by permutation of seeds, two-sided, Holm's correction over the models of the table"
        f"{seeds.at_least(seeds.floors(p, twin, gen))}; a rate in brackets: its search is open; "
        f"{results.made_by(found)}."
    )


def _kinds(lines: Results) -> str:
    found, published = finals(lines), _published(lines)
    kinds = {kind for line in found if line["exact"] for kind in line["exact"][GEN]} - {"all"}
    models = list(by_model(found, lambda line: 0.0))
    named = sorted(kind for kind in kinds if published and kind in published[0])
    twin, p = _twin(found), {}
    if {twin, TESTED} <= set(models):
        for kind in sorted(kinds):
            rest = by_model(found, partial(unread, kind=kind))
            p[kind] = seeds.permutation(rest[TESTED], rest[twin])
        p = seeds.holm(p)
    rows = []
    for kind in [*named, *sorted(kinds.difference(named))]:
        of = by_model(found, partial(right, subset=GEN, kind=kind))
        theirs = seeds.spread([seed[kind] for seed in published]) if kind in named else ""
        shown = [seeds.spread(of[model]) for model in models]
        rows.append([kind, *shown, f"{p[kind]:.3f}" if kind in p else "", theirs])
    about = (
        f"p: of the difference between `{TESTED}` and `{twin}` on the unread part, by permutation "
    )
    about += f"of seeds, two-sided, Holm's correction over the {len(kinds)} kinds."
    if published:
        lexical = statistics.fmean(seed[_OTHERS] for seed in published)
        about += f" Published: {lexical:.1f} on average in the kinds without a figure."
    return f"{markdown(['kind', *models, 'p', PUBLISHED], rows)}\n\n{about}"


def spaces(lines: Results) -> str:
    """Write ``hybonet_plus`` with other curvatures beside learned ones; no results: empty text."""
    searches = {"learned": rates(lines, "hybonet_plus")}
    found = {"learned": [line for line in finals(lines) if line["model"] == "hybonet_plus"]}
    for space in SPACES:
        searches[space] = rates(lines, "hybonet_plus", space)
        best = searches[space].best
        wanted = best and (best.stage, best.setting, best.rate, FINAL_UPDATES)
        keys = ("stage", "setting", "rate", "updates")
        found[space] = [x for x in lines if tuple(x.get(key) for key in keys) == wanted]
    found = {space: of for space, of in found.items() if len(of) > 1}
    if len(found) < 2 or "learned" not in found:
        return ""
    scores = {space: [right(line, DEV) for line in of] for space, of in found.items()}
    rows = []
    for space, values in scores.items():
        p = seeds.permutation(values, scores["learned"])
        rate = f"{found[space][0]['rate']:g}"
        rate = f"({rate})" if searches[space].is_open else rate
        row = [space, rate, len(values), seeds.spread(values)]
        rows.append([*row, "" if space == "learned" else f"{p:.3f}"])
    return (
        f"{markdown(['curvature', 'rate', 'seeds', DEV, 'p'], rows)}\n\n`hybonet_plus` after "
        f"{FINAL_UPDATES:,} updates; flat: -{SPACES['flat']['--curvature']}, not learned; a rate "
        "in brackets: its search is open; p: of the difference from learned curvatures, by "
        "permutation of seeds, two-sided."
    )


def _trials(trials: Results) -> str:
    header = ["stage", "model", "setting", "rate", "updates", "seed"]
    header += ["valid perplexity", DEV, "updates/s"]
    rows = []
    for line in trials:
        row = [line["stage"], line["model"], line["setting"], f"{line['rate']:g}"]
        row += [f"{line['updates']:,}", str(line["seed"])]
        row.append(f"{line['curve'][-1][1]:.4f}" if line["curve"] else "diverged")
        row.append(f"{right(line, DEV):.1f}" if line["exact"] else "")
        rows.append([*row, f"{line['updates_per_second'] or 0:.1f}"])
    return (
        f"{markdown(header, rows)}\n\nTrials; {DEV}: percent of exact matches on {PER_KIND} "
        "sentences of each kind of generalization; updates/s on a core that other programs use too."
    )
