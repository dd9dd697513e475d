"""SLOG in variable-free form: do hyperbolic Transformers generalize to new structures?

Reports exact match on the generalization set, overall and by kind of structure.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from hyptrans.data.sources.tatoeba import lines_in_zip
from hyptrans.support.errors import run_command
from recipes.cogs import __main__ as cogs
from recipes.cogs.__main__ import DEV, FINAL_UPDATES, GEN, twin_of, unread
from recipes.common import exact, options, results
from recipes.common.exact import TEST, Flags, Training, by_model, compared, right, score_in
from recipes.common.results import Results, markdown, with_values
from recipes.common.search import Search, search

HERE = Path(__file__).resolve().parent
FOLDER = "slog_variable_free"
ARCHIVE, MEMBER = "generalization_sets.zip", "generalization_sets/gen_varfreeLF.tsv"
PASSWORD = b"SLOG"
"""Published in the authors' README; it keeps the sets out of texts that train language models."""
MODELS = ("euclidean_prenorm", "euclidean_postnorm", "hybonet_plus")
SETTINGS: dict[str, Flags] = {"sinusoidal": cogs.SINUSOIDAL, "rotary": {"--rotary-positions": None}}
"""Flags by setting: how a model knows the order of the words."""
SEEDS = (1, 2, 3, 4, 5)
"""Seeds of final trainings."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the tables."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/slog_variable_free --out ~/slog")
    contents = f"train, dev and test as .tsv or .tsv.gz, and {ARCHIVE}"
    options.add_data(parser, contents, name=FOLDER)
    args = parser.parse_args(argv)
    exact.experiment(HERE, args, trainings, lambda task: sets(args.data), table).run()


def sets(data: Path | None) -> exact.Sets:
    """Read all sets, and the part of the generalization set that serves to choose rates."""
    data = options.required(data, "SLOG in variable-free form", "bingzhilee/SLOG")
    gen = lines_in_zip(data / ARCHIVE, MEMBER, PASSWORD)
    return cogs.with_generalization(data, cogs.examples(data / ARCHIVE, gen))


def trainings(lines: Results) -> list[Training]:
    """Return all trainings known so far, setting by setting; earlier results determine later."""
    planned: list[Training] = []
    for setting in SETTINGS:
        searches = {model: rates(lines, setting, model) for model in MODELS}
        planned += [trial for found in searches.values() for trial in found.trials]
        planned += cogs.seeded(searches, "final", FINAL_UPDATES, dict.fromkeys(MODELS, SEEDS))
    return planned


def rates(lines: Results, setting: str, model: str) -> Search[Training]:
    """Return the search for a model's rate in a setting."""
    flags = {**cogs.FLAGS, **SETTINGS[setting]}
    return search(
        lambda rate: Training("rates", model, setting, rate, cogs.UPDATES, 1, flags, (DEV,)),
        cogs.RATES,
        score_in(lines, DEV),
    )


def finals(lines: Results, setting: str) -> Results:
    """Return a setting's final trainings at the best rates so far."""
    return cogs.finals_of(lines, (rates(lines, setting, model) for model in MODELS))


def table(lines: Results) -> str:
    """Write all results as Markdown."""
    found = {setting: own for setting in SETTINGS if (own := finals(lines, setting))}
    parts = [_means(lines, found), _kinds(found)] if found else []
    parts.append(cogs.trials_of(with_values(lines, stage="rates")))
    return "\n\n".join(filter(None, parts)) or results.NOT_MEASURED


def _means(lines: Results, found: dict[str, Results]) -> str:
    mean, rest = "mean of kinds", "unread part"
    groups = {
        setting: (own, twin_of(own), [m for m in MODELS if rates(lines, setting, m).is_open])
        for setting, own in found.items()
    }
    of_sets = {name: partial(right, subset=of) for name, of in ((mean, GEN), ("test", TEST))}
    frame, at_least = compared("positions", groups, {**of_sets, rest: unread}, by=rest)
    shown = [line for own in found.values() for line in own]
    return (
        f"{markdown(frame, {'p': '.3f'}, texts=2)}\n\n"
        f"Percent of exact matches after {FINAL_UPDATES:,} updates, mean ± standard deviation over "
        "seeds; unread part: without the sentences that chose the rates; p there: two-sided "
        "permutation test of seeds against the better Transformer with the same positions, "
        f"Holm-corrected over the models with those positions{at_least}; a rate in "
        f"brackets is not tuned; {results.made_by(shown)}."
    )


def _kinds(found: dict[str, Results]) -> str:
    scored = [line for own in found.values() for line in own if line["exact"]]
    kinds = dict.fromkeys(kind for line in scored for kind in line["exact"][GEN])
    rows = []
    for kind in [kind for kind in kinds if kind != "all"]:
        row: dict[str, object] = {"kind": kind}
        for setting, own in found.items():
            scores = by_model(own, kind=partial(right, subset=GEN, kind=kind))["kind"]
            row |= {f"{model}, {setting}": scores[model] for model in scores.index}
        rows.append(row)
    return f"{markdown(pd.DataFrame(rows))}\n\nPercent of exact matches by kind, exploratory."


if __name__ == "__main__":
    sys.exit(run_command(main))
