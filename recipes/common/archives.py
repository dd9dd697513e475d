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
from recipes.common import experiment, options, rows, translation
from recipes.common.preparation import SOURCE, TARGET
from recipes.common.rows import Column
from recipes.common.steps import Step
from recipes.common.translation import Run

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
    """

    recipe: Path
    script: str
    archs: str
    columns: Sequence[Column]
    test: str
    validated: str = ""
    search_flags: Sequence[str] = ()

    def main(self, description: str | None, argv: Sequence[str] | None = None) -> None:
        """Prepare, train, validate, translate and score; write ``results.json`` and the table.

        Raises:
            UserError: an option or a command is wrong.
        """
        example = "--raw DIR --write-readme"
        parser = options.make_parser(
            self.recipe, description, example, archs=self.archs, updates=None, jobs=1
        )
        parser.add_argument(
            "--train-flags",
            default="",
            metavar="FLAGS",
            help="further flags of every training, as --train-flags='--amp --update-freq 1'",
        )
        args, others = parser.parse_known_args(argv)
        options.check_positive(args, "updates", "jobs")
        train_flags = shlex.split(args.train_flags)
        for known, words, where in (
            (_DECIDED, others, ""),
            (_DECIDED_OF_TRAININGS, train_flags, " of --train-flags"),
        ):
            given = {word.split("=")[0] for word in words}
            if decided := [word for word in known if word in given]:
                names = f"{', '.join(decided)}{where}"
                raise UserError(f"{names} is decided by this recipe: leave it out")
        require("sacremoses", "data")
        models, run, runner = experiment.start(
            self.recipe,
            args,
            source=SOURCE,
            target=TARGET,
            save_every=SAVE_EVERY,
            best=True,
            train_flags=train_flags,
            text_flags=[*translation.token_flags(SOURCE, TARGET), *self.search_flags],
        )
        prepared = self._prepare(run, others)
        runner.run(prepared)
        for column in self.columns:
            # some data sets of the hub have no validation set, which one of the test sets is
            if not run.references_of(column.subset).exists():
                raise UserError(
                    f"{run.data} has no set for {column.title}: {run.references_of(column.subset)} "
                    "is missing, take archives or the unpacked files"
                )
        found = rows.measure(models, run, runner, prepared, self.columns, jobs=args.jobs)
        experiment.finish(self.recipe, args, runner, found, self.table(found))

    def _prepare(self, run: Run, others: Sequence[str]) -> Step:
        command = ["python", translation.script(self.script), "--out", str(run.data)]
        command += ["--source-lang", SOURCE, "--target-lang", TARGET, *others]
        # hours on the larger corpus, and the script goes on where it was stopped
        given = _given(others)
        return Step("prepare", command, [run.data], resumes=True, inputs=given, keeps_account=True)

    def table(self, found: Mapping[str, Any]) -> str:
        """The results as Markdown."""
        held_out = any(HELD_OUT in command for command in found.get("commands", ()))
        also = f", of which {self.validated} is the validation set too"
        test = self.test + (also if self.validated and not held_out else "")
        return rows.table(found, self.columns, test)


def _given(words: Sequence[str]) -> list[Path]:
    """The archives, or the folder with what was in them, that the preparation is given."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--archive", action="append", default=[])
    parser.add_argument("--raw", action="append", default=[])
    found, _ = parser.parse_known_args(words)
    return [Path(name) for name in (*found.archive, *found.raw)]
