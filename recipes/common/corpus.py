"""Options, trainings and table of the recipes that train several models on one corpus."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from hyptrans.support import flags
from hyptrans.support.steps import Step
from recipes.common import options, results, scoring, translation
from recipes.common.experiment import Experiment
from recipes.common.results import Results, markdown
from recipes.common.scoring import Column
from recipes.common.settings import read_models
from recipes.common.translation import Run


@dataclass(frozen=True)
class Training:
    """A model's training; another seed or number of updates is another training."""

    model: str
    updates: int
    seed: int
    averaged: int
    run: Run = field(compare=False)

    @property
    def name(self) -> str:
        """Return the name of the training's line."""
        return f"{self.model}-{self.updates}-seed{self.seed}"


@dataclass(frozen=True)
class Corpus:
    """A corpus and the way to train models on it.

    Attributes:
        recipe: the recipe's folder.
        archs: models to train unless the user names others.
        columns: scores to report.
        test: name of the test sets.
        updates: updates of each training.
        save_every: updates between checkpoints; 0: an interrupted training starts anew.
    """

    recipe: Path
    archs: str
    columns: Sequence[Column]
    test: str
    updates: int
    save_every: int = 0

    def parser(self, description: str | None, example: str) -> argparse.ArgumentParser:
        """Return a parser with the options that all recipes of this kind share."""
        parser = options.recipe_parser(self.recipe, description, example)
        about = "models from models.ini (default: %(default)s)"
        parser.add_argument("--archs", default=self.archs, metavar="A,B", help=about)
        options.add_number(parser, "--updates", self.updates, "optimizer steps of each training")
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
        **fields: Any,
    ) -> tuple[Experiment[Training], dict[str, Run]]:
        """Train and score every model that is not done, and write the table.

        ``prepare`` returns the step that makes the data, and ``fields`` are further fields of
        :class:`Run`.

        Returns:
            The experiment, and each model's run by the model's name; no runs with ``--list``.
        """
        fields = {"save_every": self.save_every, "averaged": args.average, **fields}
        runs = {
            name: Run(args.out, name, flags, languages, args.seed, args.updates, **fields)
            for name, flags in read_models(self.recipe, args.archs.split(",")).items()
        }
        plan = [
            Training(name, run.updates, run.seed, run.averaged, run) for name, run in runs.items()
        ]

        def score(training: Training, run: Run) -> dict[str, Any]:
            seconds = scoring.seconds(run.log("train"))
            return {"train_seconds": seconds, **translation.score_columns(run, self.columns)}

        def begin(training: Training) -> tuple[Run, Step]:
            return training.run, prepare(training.run)

        table = table or self.table
        experiment = Experiment(self.recipe, args, lambda lines: plan, begin, score, table)
        if not args.list:
            # what follows the trainings reads the folders of those that are done, too
            for one in plan:
                translation.require_same(*begin(one))
        return experiment, runs if experiment.run() else {}

    def table(self, found: Results) -> str:
        """Write the results as Markdown; each row has the scores of one training."""
        if not found:
            return results.NOT_MEASURED
        scores = {column.key: column.title for column in self.columns}
        titles = {"valid_perplexity": "valid perplexity", **scores, "train_seconds": "training, s"}
        forms = {"updates": ",", "parameters": ",.0f", "valid perplexity": ".2f"}
        forms |= {**dict.fromkeys(scores.values(), ".1f"), "training, s": ",.0f"}
        order = ["model", "updates", "seed", "parameters", *titles]
        frame = pd.DataFrame(found).reindex(columns=order).rename(columns=titles)
        about = [
            f"sacreBLEU {signatures(found, self.columns)} on {self.test}",
            "one training a row",
        ]
        averaged = max(line.get("averaged", 1) for line in found)
        about += [f"averages of the last {averaged} checkpoints"] if averaged > 1 else []
        return f"{markdown(frame, forms)}\n\n{'; '.join([*about, results.made_by(found)])}"


def signatures(lines: Results, columns: Sequence[Column]) -> str:
    """Write the distinct signatures of the scores."""
    keys = [f"{column.key}_signature" for column in columns]
    return ", ".join(dict.fromkeys(f"`{x[key]}`" for key in keys for x in lines if key in x))
