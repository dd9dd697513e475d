"""COGS in variable-free form: do hyperbolic Transformers generalize by structure?

Reports exact match on the whole generalization set and by kind of generalization, beside the
figures of a published Transformer.
"""

import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.lines import read_lines
from recipes.common import exact, options, results, seeds
from recipes.common.exact import MODELS, TEST, TWINS, Flags, Training, right
from recipes.common.results import Results, markdown, rate, with_values
from recipes.common.search import Search, search

HERE = Path(__file__).resolve().parent
FOLDER = "cogs_variable_free"
FILES = {"train": "train", "valid": "dev", TEST: "test"}
PUBLISHED_FILE = "published_transformer.json"
"""A published Transformer's percent of right answers, by seed and kind."""
GEN, DEV = "gen", "gen_dev"
"""The generalization set, and its part that chooses rates; ``TEST`` is in-distribution."""
PER_KIND = 100
"""Sentences of each kind of generalization in that part."""
UPDATES, FINAL_UPDATES, LONG_UPDATES = 3000, 10000, 30000
RATES = (1e-3, 2e-3, 4e-3, 8e-3)
"""Rates to try for each model; the search continues while the best rate is the lowest or
highest."""
FINALS: dict[str, Sequence[int]] = {
    **dict.fromkeys(MODELS, range(1, 6)),
    **dict.fromkeys(("euclidean_postnorm", "hybonet_plus"), range(1, 16)),
}
"""Seeds of final trainings."""
LONG: dict[str, Sequence[int]] = dict.fromkeys((*TWINS, "hybonet_plus"), range(1, 6))
"""Seeds by model of longer trainings, which show what the final ones miss."""
SPACE_SEEDS = (1, 2, 3)
SETTING = "sinusoidal"
"""The setting of all models: the best one for a twin in the recorded trials of stage ``twin``."""
FLAGS: Flags = {
    **exact.size_flags(width=64, heads=4),
    **{"--optimizer": "adam", "--adam-betas": "(0.9, 0.999)", "--clip-norm": "1"},
    **{"--criterion": "cross_entropy", "--batch-size": "128"},
    **{"--dropout": "0.1", "--attention-dropout": "0", "--share-all-embeddings": None},
    **{"--lr-scheduler": "inverse_sqrt", "--warmup-updates": "300"},
}
SINUSOIDAL: Flags = {"--no-encoder-learned-pos": None, "--no-decoder-learned-pos": None}
_OF_TWINS: dict[str, Flags] = {
    "euclidean_prenorm": {
        "--arch": "transformer",
        **{"--encoder-normalize-before": None, "--decoder-normalize-before": None},
    },
    "euclidean_postnorm": {"--arch": "transformer", "--layernorm-embedding": None},
}
"""Flags instead of ``SINUSOIDAL``: the recorded trainings of the twins use fairseq's own
architecture, which has sinusoidal positions."""
_FIXED: Flags = {"--no-hypformer-learn-curvature": None}
SPACES: dict[str, Flags] = {"fixed": _FIXED, "flat": {**_FIXED, "--curvature": "0.01"}}
"""Flags of ``hybonet_plus`` with fixed curvatures, and with almost no curvature."""
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


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the tables."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/cogs_variable_free --out ~/cogs")
    contents = f"train, dev, test and gen as .tsv or .tsv.gz, and {PUBLISHED_FILE}"
    options.add_data(parser, contents, name=FOLDER)
    args = parser.parse_args(argv)
    experiment = exact.experiment(HERE, args, trainings, lambda task: sets(args.data), table)
    if not args.list:
        data = options.required(args.data, "COGS in variable-free form", "frankaging/ReCOGS")
        published = [*results.read_json(data / PUBLISHED_FILE).values()]
        line = {"name": PUBLISHED, "stage": PUBLISHED, "seeds": published}
        experiment.add(line, measured=False)
    experiment.run()


def sets(data: Path) -> exact.Sets:
    """Read all sets, and the part of the generalization set that serves to choose settings."""
    return with_generalization(data, examples(options.file(data, "gen.tsv")))


def with_generalization(data: Path, gen: Sequence[exact.Example]) -> exact.Sets:
    """Read the sets in a folder; add a generalization set and its first ``PER_KIND`` of a kind."""
    found = {name: examples(options.file(data, f"{stem}.tsv")) for name, stem in FILES.items()}
    frame = pd.DataFrame(gen, columns=["question", "answer", "kind"])
    first = frame.groupby("kind").head(PER_KIND).itertuples(index=False, name=None)
    return {**found, GEN: gen, DEV: [*first]}


def examples(path: Path, lines: Iterable[str] | None = None) -> list[exact.Example]:
    """Read sentences, logical forms and kinds.

    Args:
        path: the file, plain or gzipped.
        lines: its lines, if they were read already.

    Raises:
        UserError: a line does not have these three parts.
    """
    found: list[exact.Example] = []
    for number, line in enumerate(read_lines(path) if lines is None else lines, start=1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise UserError(f"{path}, line {number} is not sentence, form and kind between tabs")
        found.append((parts[0], parts[1], parts[2]))
    return found


def trainings(lines: Results) -> list[Training]:
    """Return all trainings known so far; earlier results determine later trainings."""
    searches = {model: rates(lines, model) for model in MODELS}
    trials = [trial for found in searches.values() for trial in found.trials]
    finals = seeded(searches, "final", FINAL_UPDATES, FINALS)
    longer = seeded(searches, "long", LONG_UPDATES, LONG)
    begun = SPACES if searches["hybonet_plus"].best else ()
    spaces = [one for space in begun for one in _in_space(lines, space)]
    return [*trials, *finals, *longer, *spaces]


def finals(lines: Results) -> Results:
    """Return the final trainings at the best rates so far."""
    return finals_of(lines, (rates(lines, model) for model in MODELS))


def finals_of(lines: Results, searches: Iterable[Search[Training]]) -> Results:
    """Return the final trainings at the best rates of searches."""
    best = [found.best for found in searches if found.best]
    values = [{"setting": one.setting, "model": one.model, "rate": one.rate} for one in best]
    return [line for one in values for line in with_values(lines, stage="final", **one)]


def rates(lines: Results, model: str, space: str = "") -> Search[Training]:
    """Return the search for a model's rate, with learned curvatures or with those of ``space``."""
    flags = {**FLAGS, **_OF_TWINS.get(model, SINUSOIDAL), **SPACES.get(space, {})}
    stage, setting = ("curvature", f"{SETTING}+{space}") if space else ("rates", SETTING)
    return search(
        lambda rate: Training(stage, model, setting, rate, UPDATES, 1, flags, (DEV,)),
        RATES[:-1] if space else RATES,
        exact.score_in(lines, DEV),
    )


def seeded(
    searches: Mapping[str, Search[Training]],
    stage: str,
    updates: int,
    seeds_of: Mapping[str, Sequence[int]],
) -> list[Training]:
    """Return trainings at the best rates found, sorted by seed; open searches give none."""
    found = [
        replace(best, stage=stage, updates=updates, seed=seed, answers=(DEV, GEN, TEST))
        for model, several in seeds_of.items()
        if (best := searches[model].chosen)
        for seed in several
    ]
    return sorted(found, key=lambda training: training.seed)


def _in_space(lines: Results, space: str) -> list[Training]:
    """Return short trainings with the curvature of ``space`` and long ones at their best rate."""
    found = rates(lines, "hybonet_plus", space)
    if not (best := found.chosen):
        return [*found.trials]
    long = [replace(best, updates=FINAL_UPDATES, seed=seed) for seed in SPACE_SEEDS]
    return [*found.trials, *long]


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
    dev = exact.by_model(found, dev=partial(right, subset=DEV))["dev"]
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
    frame, at_least = exact.compared("", {"": (found, twin, untuned)}, values, by=rest)
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
        scores = exact.by_model(found, whole=partial(right, subset=GEN, kind=kind))["whole"]
        rest = exact.by_model(found, rest=partial(unread, kind=kind))["rest"]
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


if __name__ == "__main__":
    sys.exit(run_command(main))
