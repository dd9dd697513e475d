"""Recipes that train several models, side by side: their options, their rows and their table."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support import flags, tables
from hyptrans.support.files import write_json
from recipes.common import options, results, scoring, translation
from recipes.common.runner import Runner
from recipes.common.settings import read_models
from recipes.common.steps import Step
from recipes.common.translation import Run, Search


@dataclass(frozen=True)
class Column:
    """A score of every model.

    Attributes:
        key: what ``results.json`` calls it.
        title: what the table calls it.
        beam: hypotheses that beam search keeps.
        metric: one of those that :func:`recipes.common.scoring.score` has.
        subset: the test set.
    """

    key: str
    title: str
    beam: int
    metric: str = "bleu"
    subset: str = "test"

    @property
    def search(self) -> Search:
        """Columns with the same one score the same file."""
        return self.beam, self.subset


def make_parser(
    recipe: Path,
    description: str | None,
    example: str,
    *,
    archs: str,
    updates: int | None = None,
    jobs: int | None = None,
) -> argparse.ArgumentParser:
    """A parser with the options of every recipe that trains several models.

    Args:
        recipe: its folder.
        description: what it does.
        example: some options.
        archs: default of ``--archs``.
        updates: default of ``--updates``; None: what each model's flags say.
        jobs: default of ``--jobs``; None: the number of cores.
    """
    parser = options.script_parser(description, recipe)
    parser.epilog = f"example: {parser.prog} {example}"
    default, add = "(default: %(default)s)", parser.add_argument
    out = Path("runs") / recipe.name
    flags.add_out(parser, f"folder to write to {default}", folder=True, default=out)
    add("--archs", default=archs, metavar="A,B", help=f"models, of those in models.ini {default}")
    about = f"optimizer steps of each training (default: {updates or 'as models.ini says'})"
    add("--updates", type=int, default=updates, metavar="N", help=about)
    flags.add_seed(parser, "seed of the training")
    about = f"translate with the average of the last N checkpoints of each training {default}"
    add("--average", type=int, default=1, metavar="N", help=about)
    jobs = jobs or os.cpu_count() or 1
    about = f"models trained at the same time {default}"
    add("--jobs", type=int, default=jobs, metavar="N", help=about)
    add("--cpu", action="store_true", help="keep off the GPU")
    if results.BEGIN in (recipe / "README.md").read_text(encoding="utf-8"):
        add("--write-readme", action="store_true", help="put results and table beside this file")
    parser.set_defaults(write_readme=False)
    flags.add_overwrite(parser, "run again what an earlier run finished")
    return parser


class Experiment:
    """Models that are trained and scored in one folder.

    Args:
        recipe: folder of the recipe.
        args: of :func:`make_parser`.
        languages: translated from and to.
        of_run: other fields of :class:`Run`.

    Raises:
        UserError: a model has no configuration, or a number is below 1.
    """

    def __init__(
        self, recipe: Path, args: argparse.Namespace, languages: tuple[str, str], **of_run: Any
    ) -> None:
        options.check_positive(args, "updates", "average", "jobs")
        self.recipe, self.args = recipe, args
        self.models = read_models(recipe, args.archs.split(","))
        self.run = Run(
            args.out,
            *languages,
            seed=args.seed,
            updates=args.updates,
            threads=options.threads_of(args.jobs, len(self.models)),
            cpu=args.cpu,
            averaged=args.average,
            **of_run,
        )
        self.runner = Runner(args.out, overwrite=args.overwrite)
        if not args.out.exists():
            new = f"{args.out.absolute()} is new"
            self.runner.say(f"{new}: everything is run (--out names another folder)")

    def measure(
        self,
        columns: Sequence[Column],
        *,
        lowercase: bool = False,
        validated: bool = True,
        beside: Sequence[Sequence[Step]] = (),
    ) -> dict[str, Any]:
        """Train and score the models, on data that are prepared: rows and signatures.

        Args:
            columns: the scores.
            lowercase: score without case.
            validated: measure the perplexity of the validation set too.
            beside: other steps that run at the same time.

        Raises:
            UserError: a command failed.
        """
        run, searches = self.run, dict.fromkeys(column.search for column in columns)
        chains = [translation.chain(run, m, searches, validated=validated) for m in self.models]
        self.runner.chains([*chains, *beside], jobs=self.args.jobs)
        rows, signatures = {}, {}
        for model in self.models:
            row = {
                "parameters": results.count_parameters(run.checkpoint(model.name)),
                "updates": run.updates_of(model),
                "train_seconds": self.runner.seconds[f"train_{model.name}"],
            }
            if validated:
                log = self.runner.log(f"validate_{model.name}")
                row["valid_perplexity"] = translation.perplexity(log)
            for column in columns:
                files = run.output(model.name, column.search), run.references(column.subset)
                score = scoring.score(column.metric, *files, lowercase=lowercase)
                # the signature is the same for every model
                row[column.key], signatures[column.key] = score.value, score.signature
            rows[model.name] = row
        found = {"models": rows, "signatures": signatures}
        return found | _compared(list(rows), run, columns, lowercase=lowercase)

    def finish(
        self,
        found: Mapping[str, Any],
        table: Callable[[Mapping[str, Any]], str],
        name: str = results.RESULTS,
    ) -> None:
        """Write ``results.json``, print the table, and publish both by name if asked to."""
        path, found = self.args.out / "results.json", conditions(self.run, self.runner) | {**found}
        write_json(path, found)
        print(f"\n{table(found)}\n")
        self.runner.say(f"results: {path}")
        if self.args.write_readme:
            results.publish(self.recipe, found, table(found), name)
            self.runner.say(f"table: {self.recipe / 'README.md'}")


def _compared(
    names: Sequence[str], run: Run, columns: Sequence[Column], *, lowercase: bool
) -> dict[str, Any]:
    """By model and column, how likely its difference from the twin is by chance."""
    baseline = scoring.baseline_of(names)
    if baseline is None:
        return {}
    p: dict[str, dict[str, float]] = {}
    signatures: dict[str, str] = {}
    tested = [column for column in columns if column.metric in scoring.METRICS]
    for search in dict.fromkeys(column.search for column in tested):
        for name in names:
            if name == baseline:
                continue
            outputs = run.output(baseline, search), run.output(name, search)
            found = scoring.compare(*outputs, run.references(search[1]), lowercase=lowercase)
            signatures = {metric: one.signature for metric, one in found.items()}
            same = {c.key: found[c.metric].p for c in tested if c.search == search}
            p.setdefault(name, {}).update({key: round(float(one), 4) for key, one in same.items()})
    return {"baseline": baseline, "p": p, "comparison_signatures": signatures}


def conditions(run: Run, runner: Runner) -> dict[str, Any]:
    """What the numbers of a run depend on, with the commands that made them.

    Versions, cores and commit are those of the trainings when they were executed, which may be long
    ago, or else of now; where they differ, all are named.
    """
    trained = [notes for name, notes in runner.notes.items() if name.startswith("train_")]
    now = results.surroundings()
    then = [notes.get("surroundings", now) for notes in trained] or [now]
    packages = dict.fromkeys(name for found in then for name in found["versions"])
    threads = _one_or_all([notes.get("threads", run.threads) for notes in trained])
    return {
        "seed": run.seed,
        "updates": run.updates,
        "averaged": run.averaged,
        "threads": threads or run.threads,
        "versions": {
            name: _one_or_all([found["versions"].get(name) for found in then]) for name in packages
        },
        **{name: _one_or_all([found[name] for found in then]) for name in ("cpu_cores", "commit")},
        "commands": runner.commands,
    }


def _one_or_all(values: Sequence[Any]) -> Any:
    """The value, or, where there are several, their texts in order; None where there is none."""
    different = list(dict.fromkeys(values))
    if len(different) < 2:
        return different[0] if different else None
    return ", ".join(map(str, different))


def table(found: Mapping[str, Any], columns: Sequence[Column], test: str) -> str:
    """The results as Markdown; ``test``: what the test set is called."""
    # older runs did not measure all of them
    columns = [column for column in columns if column.key in found["signatures"]]
    one_length = found["updates"] is not None
    validated = any("valid_perplexity" in row for row in found["models"].values())
    header = ["model", "parameters", *([] if one_length else ["updates"])]
    header += ["valid perplexity"] if validated else []
    header += [column.title for column in columns] + ([] if validated else ["training, s"])
    rows: list[list[object]] = []
    for name, row in found["models"].items():
        p, seconds = found.get("p", {}).get(name, {}), row.get("train_seconds")
        cells = [name, f"{row['parameters']:,}", *([] if one_length else [f"{row['updates']:,}"])]
        cells += [_perplexity(row["valid_perplexity"])] if validated else []
        cells += [scoring.cell(row[c.key], p.get(c.key)) if c.key in row else "" for c in columns]
        rows.append([*cells, *([] if validated else [seconds and f"{seconds:.0f}"])])
    lines = tables.markdown(header, rows)
    signatures = dict.fromkeys(f"`{found['signatures'][column.key]}`" for column in columns)
    updates = f"{found['updates']:,} updates; " if one_length else ""
    versions = found["versions"]
    averaged = found.get("averaged", 1)
    about = [
        f"sacreBLEU {', '.join(signatures)} on {test}",
        scoring.caption(found),
        f"{updates}one run of each, seed {found['seed']}",
        f"the average of the last {averaged} checkpoints of each" if averaged > 1 else "",
        f"torch {versions['torch']}, fairseq {versions['fairseq']}",
    ]
    return f"{lines}\n\n{'; '.join(filter(None, about))}"


def _perplexity(value: float | None) -> str:
    # no JSON number is infinite or none
    return "diverged" if value is None or not math.isfinite(value) else f"{value:.2f}"
