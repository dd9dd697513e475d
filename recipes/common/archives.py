"""A published corpus, English to German: from its archives to one row a model."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from recipes.common import experiment, translation
from recipes.common.experiment import Column, Experiment
from recipes.common.steps import Step
from recipes.common.translation import Run

SOURCE, TARGET = "en", "de"
SAVE_EVERY = 1000
"""Updates between checkpoints, where the validation perplexity is measured too."""
HELD_OUT = "--valid-from-train"
"""Option of a preparation that takes the validation set out of the training text."""
_DECIDED = ("--source-lang", "--target-lang", "--bpe", "--raw-text")
"""Options of the preparation that this recipe's scores rest on."""
_DECIDED_OF_TRAININGS = ("--arch", "--max-update", "--save-dir", "--seed")
"""Flags of trainings that a file of flags or an option of the recipe gives, as the table says."""


@dataclass(frozen=True)
class Corpus:
    """What the recipes of two corpora differ in.

    Attributes:
        recipe: its folder.
        script: the script of ``data-prep`` that prepares it.
        archs: the models that are trained unless others are named.
        columns: the scores.
        test: what the test sets are called.
        validated: of them, the validation set, unless that is held out of the training text.
        search_flags: flags of beam search.
        lowercase: the test sets are scored without case.
    """

    recipe: Path
    script: str
    archs: str
    columns: Sequence[Column]
    test: str
    validated: str = ""
    search_flags: Sequence[str] = ()
    lowercase: bool = False

    def main(self, description: str | None, argv: Sequence[str] | None = None) -> None:
        """Prepare, train, validate, translate and score; write ``results.json`` and the table.

        Raises:
            UserError: an option or a command is wrong.
        """
        example = "--raw DIR --write-readme"
        parser = experiment.make_parser(self.recipe, description, example, archs=self.archs, jobs=1)
        about = "further flags of every training, as --train-flags='--amp --update-freq 1'"
        parser.add_argument(
            "--train-flags", type=shlex.split, default=[], metavar="FLAGS", help=about
        )
        args, others = parser.parse_known_args(argv)
        _refuse(_DECIDED, others, "")
        _refuse(_DECIDED_OF_TRAININGS, args.train_flags, " of --train-flags")
        require("sacremoses", "data")
        made = Experiment(
            self.recipe,
            args,
            (SOURCE, TARGET),
            save_every=SAVE_EVERY,
            best=True,
            train_flags=args.train_flags,
            text_flags=[*translation.token_flags(SOURCE, TARGET), *self.search_flags],
        )
        made.runner.run(self.prepare(made.run, others))
        for column in self.columns:
            references = made.run.references(column.subset)
            # some data sets of the hub have no validation set, which one of the test sets is
            if not references.exists():
                raise UserError(
                    f"{made.run.data} has no set for {column.title}: {references} is missing, take "
                    "archives or the unpacked files"
                )
        made.finish(made.measure(self.columns, lowercase=self.lowercase), self.table)

    def prepare(self, run: Run, others: Sequence[str]) -> Step:
        """The preparation, with options of its own."""
        command = ["python", translation.script(self.script), "--out", str(run.data)]
        command += ["--source-lang", SOURCE, "--target-lang", TARGET, *others]
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for source in ("--archive", "--raw"):
            parser.add_argument(source, action="append", type=Path, default=[], dest="given")
        given = parser.parse_known_args(others)[0].given
        # hours on the larger corpus, and the script goes on where it was stopped
        return Step(
            run.prepared, command, [run.data], resumes=True, inputs=given, keeps_account=True
        )

    def table(self, found: Mapping[str, Any]) -> str:
        """The results as Markdown."""
        held_out = any(HELD_OUT in command for command in found.get("commands", ()))
        also = f", of which {self.validated} is the validation set too"
        test = self.test + (also if self.validated and not held_out else "")
        return experiment.table(found, self.columns, test)


def _refuse(decided: Sequence[str], words: Sequence[str], where: str) -> None:
    given = {word.split("=")[0] for word in words}
    if wrong := [word for word in decided if word in given]:
        names = ", ".join(wrong)
        raise UserError(f"{names}{where} is decided by this recipe: leave it out")
