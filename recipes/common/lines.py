"""Trainings one after the other, each a line of results.jsonl once it is scored.

Whatever stops the command, the same one goes on; with --write-readme the results are those beside
the recipe: what is in them is done, and what is finished is added.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import flags
from hyptrans.support.errors import UserError
from hyptrans.support.files import one_at_a_time, write_whole
from recipes.common import options, results, translation
from recipes.common.results import Results
from recipes.common.runner import Runner
from recipes.common.settings import Model
from recipes.common.steps import Step, portable_command
from recipes.common.translation import Run

RESULTS = "results.jsonl"
STOPPED = "the same command goes on with the unfinished training"


def make_parser(recipe: Path, description: str | None, example: str) -> argparse.ArgumentParser:
    """A parser with the options of every recipe that keeps lines."""
    parser = options.script_parser(description, recipe)
    parser.epilog = f"example: {parser.prog} {example}"
    add = parser.add_argument
    about, out = "folder to work in (default: %(default)s)", Path("runs") / recipe.name
    flags.add_out(parser, about, folder=True, default=out)
    add("--write-readme", action="store_true", help="go on with the results beside this file")
    add("--only", nargs="+", metavar="NAME", help="trainings to run, of those that --list names")
    add("--list", action="store_true", help="list the trainings, and which are done, and stop")
    add("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")
    add("--cpu", action="store_true", help="keep off the GPU")
    return parser


class Queue:
    """The trainings of a recipe, and the lines of those that are done.

    Args:
        recipe: its folder.
        args: of :func:`make_parser`.
        trainings: those that can be named so far, by the ``name`` of their lines; earlier results
            decide on later ones.
        publish: shows the lines beside the recipe whenever one is added.

    Raises:
        UserError: ``--only`` names none of the trainings.
    """

    def __init__(
        self,
        recipe: Path,
        args: argparse.Namespace,
        trainings: Callable[[Results], Sequence[Any]],
        publish: Callable[[Results], object],
    ) -> None:
        options.check_positive(args, "threads")
        self.path = (recipe if args.write_readme else args.out) / RESULTS
        self._only = args.only
        self._trainings = trainings
        self._publish = publish if args.write_readme else lambda lines: None
        # read once: the results themselves may be files of the repository
        self._surroundings = results.surroundings()
        known = {training.name for training in trainings(self.lines)}
        if wrong := [name for name in args.only or () if name not in known]:
            raise UserError(f"--only: no training is called {', '.join(wrong)}; --list names all")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All that is recorded."""
        return results.read_lines(self.path)

    def show(self) -> None:
        """Print the names of all trainings, and which are done."""
        for training, done in self._states():
            print(f"{training.name}{'  done' if done else ''}")

    def run(self, score: Callable[[Any], Mapping[str, Any]]) -> None:
        """Add the line that ``score`` gives of each training that is not done."""
        while unfinished := next(
            (
                training
                for training, done in self._states()
                if not done and (self._only is None or training.name in self._only)
            ),
            None,
        ):
            self.add(score(unfinished))

    def _states(self) -> list[tuple[Any, bool]]:
        """The trainings, and whether each is done."""
        lines = self.lines
        done = {line["name"] for line in lines}
        return [(training, training.name in done) for training in self._trainings(lines)]

    def add(self, line: Mapping[str, Any], *, measured: bool = True) -> None:
        """Add a line, unless another process was here first.

        Args:
            line: with a name.
            measured: here, so that what numbers depend on is noted too.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(self.path.parent):
            lines = self.lines
            if line["name"] not in {known["name"] for known in lines}:
                lines.append({**line, **(self._surroundings if measured else {})})
                write_whole(self.path, "".join(json.dumps(entry) + "\n" for entry in lines))
                self._publish(lines)


def train(runner: Runner, run: Run, model: Model, prepared: Step) -> tuple[dict[str, Any], bool]:
    """Train a model; returns what its line has of that, and False where it diverged.

    Raises:
        UserError: something else ended it.
    """
    trained, finished = translation.train(run, model), True
    runner.run(prepared)
    log = runner.log(trained.name)
    try:
        runner.run(trained)
    except UserError:
        if not translation.diverged(log):
            raise
        finished = False
        runner.say(f"{model.name}: diverged")
    command = portable_command(trained, runner.out)
    return {"command": command, **translation.course(log)}, finished
