"""Options, lines and table of the recipes that train several models on one corpus."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.support import flags, steps, tables
from hyptrans.support.steps import Step
from recipes.common import options, results, scoring, translation
from recipes.common.results import Record, Results
from recipes.common.settings import Model, read_models
from recipes.common.translation import Run


@dataclass(frozen=True)
class Column:
    """A column of the table: a score of every model.

    Attributes:
        key: name of the score in the results.
        title: name of the score in the table.
        beam: beam size, the number of hypotheses.
        metric: a metric of :func:`recipes.common.scoring.score`.
    """

    key: str
    title: str
    beam: int
    metric: str = "bleu"


@dataclass(frozen=True)
class _Training:
    model: Model
    run: Run

    @property
    def name(self) -> str:
        """Return the line's name; another seed or number of updates is another training."""
        return f"{self.model.name}-{self.run.updates}-seed{self.run.seed}"


@dataclass(frozen=True)
class Corpus:
    """A corpus and the way to train models on it.

    Attributes:
        recipe: the recipe's folder.
        archs: models to train unless the user names others.
        columns: scores to report.
        test: name of the test sets.
        updates: updates of each training; None: as many as a model's flags say.
        of_run: fields of :class:`Run`.
    """

    recipe: Path
    archs: str
    columns: Sequence[Column]
    test: str
    updates: int | None = None
    of_run: Mapping[str, Any] = field(default_factory=dict)

    def parser(self, description: str | None, example: str) -> argparse.ArgumentParser:
        """Return a parser with the options that all recipes of this kind share."""
        parser = options.recipe_parser(self.recipe, description, example)
        about = "models, of those in models.ini (default: %(default)s)"
        parser.add_argument("--archs", default=self.archs, metavar="A,B", help=about)
        about = "optimizer steps of each training"
        about += "" if self.updates else " (default: as models.ini says)"
        options.add_number(parser, "--updates", self.updates, about)
        flags.add_seed(parser, "seed of the training")
        about = "translate with the average of the last N checkpoints of each training"
        options.add_number(parser, "--average", 1, about)
        options.add_number(parser, "--jobs", 1, "models trained at the same time")
        return parser

    def run(
        self,
        args: argparse.Namespace,
        languages: tuple[str, str],
        prepare: Callable[[Run], Step],
        table: Callable[[Results], str] | None = None,
        **of_run: Any,
    ) -> tuple[Record, dict[str, Run]]:
        """Train and score every model that is not done, and write the table.

        Args:
            args: options from :meth:`parser`.
            languages: source and target language.
            prepare: returns the step that makes the data.
            table: writes the table of the lines; default: :meth:`table`.
            of_run: further fields of :class:`Run`.

        Returns:
            The record, and each model's run by the model's name; no runs with ``--list``.

        Raises:
            UserError: a model has no settings, or a command failed.
        """
        shared = {"seed": args.seed, "threads": args.threads, "averaged": args.average}
        shared |= {**self.of_run, **of_run}
        trainings = [
            _Training(
                model, Run(args.out, *languages, updates=args.updates or model.updates, **shared)
            )
            for model in read_models(self.recipe, args.archs.split(","))
        ]
        table = table or self.table

        def publish(found: Results) -> None:
            results.put_into(self.recipe / "README.md", table(found))

        record = Record(self.recipe, args, lambda found: trainings, publish)
        if args.list:
            record.show()
            return record, {}
        prepared = prepare(trainings[0].run)
        for one in trainings:
            translation.require_same(one.run, one.model, args.out, prepared)
        steps.run([prepared], args.out)

        def train(one: _Training) -> tuple[dict[str, Any], bool]:
            return translation.train(one.run, one.model, args.out, prepared)

        left = record.left()
        with ThreadPoolExecutor(args.jobs) as pool:
            for one, found in zip(left, [*pool.map(train, left)], strict=True):
                record.add(self._line(one, args.out, *found))
        print(f"\n{table(record.lines)}\n")
        return record, {one.model.name: one.run for one in trainings}

    def _line(
        self, training: _Training, out: Path, trained: Mapping[str, Any], finished: bool
    ) -> dict[str, Any]:
        """Return a training's line; a training that diverged has no scores."""
        run, name = training.run, training.model.name
        seconds = translation.seconds(out / "logs" / f"train_{name}.log")
        line = {"name": training.name, "model": name, "updates": run.updates, "seed": run.seed}
        line |= {**trained, "averaged": run.averaged, "train_seconds": seconds}
        if not finished:
            return {**line, "valid_perplexity": None}
        searches = dict.fromkeys((column.beam, "test") for column in self.columns)
        line |= translation.translate(run, name, out, searches, validated=True)
        for column in self.columns:
            output = run.output(name, (column.beam, "test"))
            score = scoring.score(column.metric, output, run.references())
            line |= {column.key: score.value, f"{column.key}_signature": score.signature}
        return line

    def table(self, found: Results) -> str:
        """Write the results as Markdown; each row has the scores of one training."""
        if not found:
            return results.NOT_MEASURED
        header = ["model", "updates", "seed", "parameters", "valid perplexity"]
        header += [*(column.title for column in self.columns), "training, s"]
        rows = []
        for line in found:
            row = [line["model"], f"{line['updates']:,}", line["seed"]]
            row += [_shown(line, "parameters", ",d"), _shown(line, "valid_perplexity", ".2f")]
            row += [_shown(line, column.key, ".1f") for column in self.columns]
            rows.append([*row, _shown(line, "train_seconds", ",.0f")])
        keys = (f"{column.key}_signature" for column in self.columns)
        signed = dict.fromkeys(f"`{line[key]}`" for key in keys for line in found if key in line)
        about = [f"sacreBLEU {', '.join(signed)} on {self.test}", "one training a row"]
        averaged = max(line.get("averaged", 1) for line in found)
        about += [f"averages of the last {averaged} checkpoints"] if averaged > 1 else []
        return f"{tables.markdown(header, rows)}\n\n{'; '.join([*about, results.made_by(found)])}"


def _shown(line: Mapping[str, Any], key: str, form: str) -> str:
    return "" if line.get(key) is None else format(line[key], form)
