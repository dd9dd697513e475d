"""Run an experiment: each training of its plan becomes one line of results once it is scored."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.files import one_at_a_time, write_whole
from hyptrans.support.steps import Step
from recipes.common import results, translation
from recipes.common.results import LINES, Results
from recipes.common.translation import Run


class Planned(Protocol):
    """A training of a plan: a dataclass whose compared fields are also those of its line."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """The name of the training and of its line."""


def settings_of(training: Planned) -> dict[str, Any]:
    """Return what a training's line records of the plan."""
    found = {one.name: getattr(training, one.name) for one in fields(training) if one.compare}
    return {**found, "name": training.name}


Training = TypeVar("Training", bound=Planned)


@dataclass
class Experiment(Generic[Training]):
    """The trainings of a recipe, and what is done with each.

    With ``--write-readme`` the lines are those beside the recipe, else those in ``--out``.

    Attributes:
        recipe: the recipe's folder.
        args: options from :func:`recipes.common.options.recipe_parser`.
        plan: returns the trainings known from the lines so far; earlier ones determine later ones.
        begin: returns a training's commands and the step that makes its data.
        score: translates and scores a finished training; returns that part of its line.
        table: writes the lines as Markdown.
        lost: fields of a diverged training's line, in place of scores.
        pictures: returns pictures of the lines, by file name beside the README.
    """

    recipe: Path
    args: argparse.Namespace
    plan: Callable[[Results], Sequence[Training]]
    begin: Callable[[Training], tuple[Run, Step]]
    score: Callable[[Training, Run], Mapping[str, Any]]
    table: Callable[[Results], str]
    lost: Mapping[str, Any] = field(default_factory=lambda: {"valid_perplexity": None})
    pictures: Callable[[Results], Mapping[str, str]] = lambda lines: {}
    # read once, because the results themselves may be files of the repository
    _surroundings: Mapping[str, Any] = field(default_factory=results.surroundings)

    @property
    def path(self) -> Path:
        """Return the file of the lines."""
        return (self.recipe if self.args.write_readme else self.args.out) / LINES

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return all recorded lines."""
        return results.read_lines(self.path)

    def trainings(self) -> list[tuple[Training, bool]]:
        """Return the trainings known so far, and whether each is done.

        Raises:
            UserError: a line has other settings than the training of its name.
        """
        lines = self.lines
        planned = self.plan(lines)
        wanted = {one.name: json.loads(json.dumps(settings_of(one))) for one in planned}
        for number, line in enumerate(lines, start=1):
            for key, value in wanted.get(line["name"], {}).items():
                if line.get(key, value) != value:
                    raise UserError(
                        f"{self.path}, line {number}: {line['name']} has {key} {line[key]} where "
                        f"the plan has {value}: take the line out, or name another --out"
                    )
        done = {line["name"] for line in lines}
        return [(one, one.name in done) for one in planned]

    def run(self) -> bool:
        """Run all trainings that are not done, and print the table; with ``--list``, only list.

        Returns:
            Whether the trainings are done.

        Raises:
            UserError: ``--only`` names an unknown training, or a command failed.
        """
        only, found = self.args.only, self.trainings()
        if wrong := set(only or ()).difference(one.name for one, _ in found):
            names = ", ".join(sorted(wrong))
            raise UserError(f"--only: no training is called {names}; --list names all")
        if self.args.list:
            for one, done in found:
                print(f"{one.name}{'  done' if done else ''}")
            return False
        jobs = getattr(self.args, "jobs", 1)
        while left := [
            one for one, done in self.trainings() if not done and (not only or one.name in only)
        ]:
            self._train(left[:jobs])
        which = "each training of --only" if only else "every training"
        print(f"\n{self.table(self.lines)}\n\n{self.path}: {which} is done")
        return True

    def _train(self, trainings: Sequence[Training]) -> None:
        """Run several trainings at the same time, then score one after the other."""
        begun = [self.begin(one) for one in trainings]
        for run, data in begun:
            translation.require_same(run, data)
        for run, data in begun:
            steps.run([data], run.data.parent)
        with ThreadPoolExecutor(len(begun)) as pool:
            trained = [*pool.map(lambda one: translation.train(*one), begun)]
        for one, (run, _), (found, finished) in zip(trainings, begun, trained, strict=True):
            scored = self.score(one, run) if finished else self.lost
            self.add({**settings_of(one), **found, **scored})

    def add(self, line: Mapping[str, Any], *, measured: bool = True) -> None:
        """Add a line, unless another process has already added it.

        Args:
            line: a line with a name.
            measured: whether it was measured here; then record the versions and cores that it
                depends on.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(self.path.parent):
            lines = self.lines
            if line["name"] in {known["name"] for known in lines}:
                return
            lines.append({**line, **(self._surroundings if measured else {})})
            write_whole(self.path, "".join(json.dumps(entry) + "\n" for entry in lines))
            if self.args.write_readme:
                results.put_into(self.recipe / "README.md", self.table(lines))
                for name, text in self.pictures(lines).items():
                    results.write_changed(self.recipe / name, text)
