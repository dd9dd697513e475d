"""Run trainings one after the other; each becomes a line of results.jsonl once it is scored.

The same command resumes an unfinished training. With --write-readme it uses the results beside
the recipe: it skips the trainings recorded there and adds those that it finishes.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import flags
from hyptrans.support.errors import UserError
from hyptrans.support.files import one_at_a_time, write_whole
from hyptrans.support.steps import Step
from recipes.common import options, results, translation
from recipes.common.commands import execute, portable, say
from recipes.common.results import Results
from recipes.common.settings import Model
from recipes.common.translation import Run, Search

RESULTS = "results.jsonl"
STOPPED = "the same command goes on with the unfinished training"
RENAMED: Mapping[str, Mapping[str, str]] = {
    "euclidean_prenorm_iwslt_d64": {
        "--arch": "euclidean_iwslt_d64",
        **{"--encoder-normalize-before": "", "--decoder-normalize-before": ""},
    },
    "hybonet_plus_iwslt_d64": {
        "--arch": "hypformer_iwslt_d64",
        "--hypformer-attention": "softmax",
    },
}
"""The flags that older records have instead of an architecture, by architecture."""


def make_parser(recipe: Path, description: str | None, example: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every recipe that records lines."""
    parser = options.script_parser(description, recipe)
    parser.epilog = f"example: {parser.prog} {example}"
    add = parser.add_argument
    about, out = "folder to work in (default: %(default)s)", Path("runs") / recipe.name
    flags.add_out(parser, about, folder=True, default=out)
    if results.BEGIN in (recipe / "README.md").read_text(encoding="utf-8"):
        add("--write-readme", action="store_true", help="go on with the results beside this file")
    parser.set_defaults(write_readme=False)
    add("--only", nargs="+", metavar="NAME", help="trainings to run, of those that --list names")
    add("--list", action="store_true", help="list the trainings, and which are done, and stop")
    options.add_number(parser, "--threads", 1, "CPU threads")
    return parser


def flags_of(command: str) -> dict[str, str]:
    """Return a command's settings as values by flag; the last value of a flag counts.

    Variables before the command and ``--cpu`` only say where it ran, so they are left out.
    """
    found: dict[str, str] = {}
    flag = ""
    for word in shlex.split(command):
        if word.startswith("--"):
            flag = word
            found[flag] = ""
        elif flag:
            found[flag] = f"{found[flag]} {word}".strip()
    found.pop("--cpu", None)
    return found


def differing(recorded: str, planned: str) -> str:
    """Describe how the settings of two commands differ; return empty text if they don't."""
    then, now = flags_of(recorded), flags_of(planned)
    old_names = RENAMED.get(now.get("--arch", ""), {})
    if old_names.items() <= then.items():
        then = {flag: value for flag, value in then.items() if flag not in old_names}
        then |= {flag: now[flag] for flag in now if flag in old_names}
    flags = [flag for flag in {**then, **now} if then.get(flag) != now.get(flag)]
    recorded, planned = (
        ", ".join(f"{flag} {of[flag]}".strip() if flag in of else f"no {flag}" for flag in flags)
        for of in (then, now)
    )
    return f"{recorded}, and the plan has {planned}" if flags else ""


class Queue:
    """The trainings of a recipe, and the lines of those that are done.

    Args:
        recipe: the recipe's folder.
        args: options from :func:`make_parser`.
        trainings: returns the trainings known from the results so far; the ``name`` of each is
            also the name of its line.
        publish: publishes the lines beside the recipe whenever the queue adds one.
        command: returns the words of a training's command.

    Raises:
        UserError: ``--only`` names an unknown training.
    """

    def __init__(
        self,
        recipe: Path,
        args: argparse.Namespace,
        trainings: Callable[[Results], Sequence[Any]],
        publish: Callable[[Results], object],
        command: Callable[[Any], Sequence[str]],
    ) -> None:
        self.path = (recipe if args.write_readme else args.out) / RESULTS
        self._only, self._out = args.only, args.out
        self._command = command
        self._trainings = trainings
        self._publish = publish if args.write_readme else lambda lines: None
        # read once, because the results themselves may be files of the repository
        self._surroundings = results.surroundings()
        known = {training.name for training in trainings(self.lines)}
        if wrong := [name for name in args.only or () if name not in known]:
            raise UserError(f"--only: no training is called {', '.join(wrong)}; --list names all")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return all recorded lines."""
        return results.read_lines(self.path)

    def show(self) -> None:
        """Print the names of all trainings and whether each is done."""
        for training, done, others in self._states():
            state = "  recorded with other settings" if others else "  done" if done else ""
            print(f"{training.name}{state}")

    def left(self) -> list[Any]:
        """Return the trainings that the user wants and that are not done.

        Raises:
            UserError: a training is recorded with other settings.
        """
        left = []
        for training, done, others in self._states():
            if self._only is not None and training.name not in self._only:
                continue
            if others:
                raise UserError(
                    f"{self.path} has {training.name} with {others}: choose another --out, or "
                    "take that line out"
                )
            left += [] if done else [training]
        return left

    def run(self, score: Callable[[Any], Mapping[str, Any]]) -> None:
        """Add the line that ``score`` returns for each training that is not done."""
        while left := self.left():
            self.add(score(left[0]))

    def _states(self) -> Iterator[tuple[Any, bool, str]]:
        """Yield each training, whether it is done, and how its recorded settings differ."""
        lines = self.lines
        known = {line["name"]: line for line in lines}
        for training in self._trainings(lines):
            line, others = known.get(training.name), ""
            if line and "command" in line:
                others = differing(line["command"], portable(self._command(training), self._out))
            yield training, line is not None, others

    def add(self, line: Mapping[str, Any], *, measured: bool = True) -> None:
        """Add a line, unless another process has already added it.

        Args:
            line: a line with a name.
            measured: it was measured here, so record the versions and cores that it depends on.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(self.path.parent):
            lines = self.lines
            if line["name"] not in {known["name"] for known in lines}:
                lines.append({**line, **(self._surroundings if measured else {})})
                write_whole(self.path, "".join(json.dumps(entry) + "\n" for entry in lines))
                self._publish(lines)


def train(run: Run, model: Model, out: Path, prepared: Step) -> tuple[dict[str, Any], bool]:
    """Train; return the training's part of its line, and False if it diverged.

    Raises:
        UserError: the training failed for another reason.
    """
    finished, log = True, out / "logs" / f"train_{model.name}.log"
    try:
        translation.train(run, model, out, prepared)
    except translation.AnotherTraining:
        raise
    except UserError:
        if not (log.exists() and translation.diverged(log)):
            raise
        finished = False
        say(f"{model.name}: diverged")
    return {"command": portable(run.train(model), out), **translation.course(log)}, finished


def translate(
    run: Run, name: str, out: Path, searches: Iterable[Search], *, validated: bool = False
) -> dict[str, Any]:
    """Translate with a trained model; return the model's part of its line.

    Args:
        run: what the commands of the recipe share.
        name: name of the training.
        out: folder of the recipe's run.
        searches: beam sizes and test sets.
        validated: also measure the perplexity of the validation set.
    """
    commands = {f"average_{name}": run.average(name)} if run.averaged > 1 else {}
    commands |= {f"validate_{name}": run.validate(name)} if validated else {}
    for search in searches:
        commands[f"translate_{run.output(name, search).parent.name}"] = run.generate(name, search)
    for command_name, command in commands.items():
        log = out / "logs" / f"{command_name}.log"
        log.unlink(missing_ok=True)
        execute(command, log, threads=run.threads)
    found: dict[str, Any] = {}
    if validated:
        perplexity = translation.perplexity(out / "logs" / f"validate_{name}.log")
        # JSON has neither infinity nor NaN
        found["valid_perplexity"] = perplexity if math.isfinite(perplexity) else None
    parameters = results.count_parameters(run.checkpoint(name), run.user_dir)
    return {**found, "parameters": parameters}
