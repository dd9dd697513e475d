"""Write the tables of the results on COGS, beside a published Transformer's figures."""

import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from recipes.cogs.plan import DEV, FINAL_UPDATES, GEN, PER_KIND, SPACES, finals, rates
from recipes.common import results, seeds
from recipes.common.exact import MODELS, TEST, TWINS, by_model, compared, right
from recipes.common.results import Results, markdown, rate, with_values

PUBLISHED = "published"
"""Name of a published Transformer's line: for each seed, percent of right answers by kind,
``lex_acc`` over all kinds not listed, and ``overall_acc``."""
_OTHERS, _ALL = "lex_acc", "overall_acc"
LEAST_SEEDS = 3
"""Fewest seeds of a twin to compare with, if any twin has this many."""
TESTED = "hybonet_plus"
"""The model whose kinds of generalization are compared with the twin's."""
_OF_A_KIND = 1000
"""Sentences of each kind in the generalization set."""


def table(lines: Results) -> str:
    """Write all results as Markdown."""
    trials = [line for line in lines if line["stage"] not in ("final", PUBLISHED)]
    parts = [means(lines), _kinds(lines)] if finals(lines) else []
    parts += [spaces(lines), trials_of(trials)]
    return "\n\n".join(filter(None, parts)) or results.NOT_MEASURED


def unread(line: Mapping[str, Any], kind: str = "all") -> float:
    """Return the percent of right answers on the sentences that chose no setting."""
    whole, part = right(line, GEN, kind), right(line, DEV, kind)
    return float(whole * _OF_A_KIND - part * PER_KIND) / (_OF_A_KIND - PER_KIND)


def _published(lines: Results) -> Results:
    return next((line["seeds"] for line in lines if line["name"] == PUBLISHED), [])


def twin_of(found: Results) -> str:
    """Return the baseline Transformer that is better on the sentences that choose settings."""
    dev = by_model(found, dev=partial(right, subset=DEV))["dev"]
    trained = [model for model in TWINS if model in dev]
    several = [model for model in trained if len(dev[model]) >= LEAST_SEEDS] or trained
    return max(several, key=lambda model: statistics.fmean(dev[model]), default="")


def means(lines: Results) -> str:
    """Write the table of each model's final trainings, averaged over seeds."""
    found, published = finals(lines), _published(lines)
    if not found:
        return results.NOT_MEASURED
    whole, rest, twin = "all of gen", "unread part", twin_of(found)
    values = {"parameters": lambda line: line.get("parameters"), rest: unread}
    values |= {name: partial(right, subset=of) for name, of in ((whole, GEN), ("test", TEST))}
    untuned = [model for model in MODELS if rates(lines, model).is_open]
    frame, at_least = compared("", {"": (found, twin, untuned)}, values, by=rest)
    frame["parameters"] = [max(filter(None, x), default=None) for x in frame["parameters"]]
    if published:
        overall = [seed[_ALL] for seed in published]
        row = {"model": PUBLISHED, "seeds": len(published), whole: overall}
        frame = pd.concat([frame, pd.DataFrame([row])])
    frame = frame[["model", "parameters", "rate", "seeds", whole, rest, "p", "test"]]
    return (
        f"{markdown(frame, {'parameters': ',.0f', 'p': '.3f'})}\n\n"
        f"Percent of exact matches after {found[0]['updates']:,} updates, "
        f"`{found[0]['setting']}`, mean ± standard deviation over seeds; unread part: "
        "without the sentences that chose the settings; p there: two-sided permutation test of "
        f"seeds against `{twin}`, Holm-corrected over the table{at_least}; a rate in "
        f"brackets is not tuned; {results.made_by(found)}."
    )


def _kinds(lines: Results) -> str:
    found, published = finals(lines), _published(lines)
    kinds = {kind for line in found if line["exact"] for kind in line["exact"][GEN]} - {"all"}
    named = sorted(kind for kind in kinds if published and kind in published[0])
    twin, rows = twin_of(found), []
    p: dict[str, float | None] = {}
    for kind in [*named, *sorted(kinds.difference(named))]:
        scores = by_model(found, whole=partial(right, subset=GEN, kind=kind))["whole"]
        rest = by_model(found, rest=partial(unread, kind=kind))["rest"]
        p[kind] = seeds.permutation(rest.get(TESTED, []), rest.get(twin, []))
        other = [seed[kind] for seed in published] if kind in named else None
        rows.append({"kind": kind, **scores, "p": None, PUBLISHED: other})
    frame = pd.DataFrame(rows).assign(p=lambda rows: rows["kind"].map(seeds.holm(p)))
    about = (
        f"p: two-sided permutation test of seeds, `{TESTED}` against `{twin}`, on the unread part, "
        f"Holm-corrected over {len(kinds)} kinds."
    )
    if published:
        lexical = statistics.fmean(seed[_OTHERS] for seed in published)
        about += f" Published: {lexical:.1f} on average in the kinds without a figure."
    return f"{markdown(frame, {'p': '.3f'})}\n\n{about}"


def spaces(lines: Results) -> str:
    """Write ``hybonet_plus`` with other curvatures beside learned ones; no results: empty text."""
    learned = [right(x, DEV) for x in with_values(finals(lines), model="hybonet_plus")]
    rows = []
    for space in ("learned", *SPACES):
        found = rates(lines, "hybonet_plus", "" if space == "learned" else space)
        if not (best := found.best):
            continue
        values = {"stage": best.stage, "setting": best.setting, "rate": best.rate}
        of = [right(x, DEV) for x in with_values(lines, updates=FINAL_UPDATES, **values)]
        scores = learned if space == "learned" else of
        if len(scores) > 1:
            row = {"curvature": space, "rate": rate(best.rate, found.is_open), "seeds": len(scores)}
            p = None if space == "learned" else seeds.permutation(scores, learned)
            rows.append({**row, DEV: scores, "p": p})
    if len(rows) < 2 or rows[0]["curvature"] != "learned":
        return ""
    return (
        f"{markdown(pd.DataFrame(rows), {'p': '.3f'})}\n\n`hybonet_plus` after "
        f"{FINAL_UPDATES:,} updates; flat: -{SPACES['flat']['--curvature']}, not learned; a rate "
        "in brackets is not tuned; p: two-sided permutation test of seeds against learned "
        "curvatures."
    )


def trials_of(trials: Results) -> str:
    """Write a row for each training that chose a setting or a rate; no trainings: empty text."""
    if not trials:
        return ""
    keys = ["stage", "model", "setting", "rate", "updates", "seed"]
    frame = pd.DataFrame(trials)[keys]
    frame["valid perplexity"] = [x["curve"][-1][1] if x["curve"] else "diverged" for x in trials]
    frame[DEV] = [right(x, DEV) if x["exact"] else None for x in trials]
    frame["updates/s"] = [x["updates_per_second"] or 0 for x in trials]
    forms = {"rate": "g", "updates": ",", "valid perplexity": ".4f"}
    return (
        f"{markdown(frame, {**forms, DEV: '.1f', 'updates/s': '.1f'})}\n\n"
        f"Trials; {DEV}: percent of exact matches on {PER_KIND} "
        "sentences of each kind of generalization; updates/s on a core that other programs use too."
    )
