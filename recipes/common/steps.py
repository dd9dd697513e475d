"""A command of a recipe, what it leaves, and how it is written: here, anywhere, and for a user."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hyptrans.support.errors import UserError
from recipes.common.options import DATA_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""
_WITHOUT_EFFECT = {"--cpu": 0, "--keep-intermediate": 0, "--workers": 1}
"""Flags, and how many values they have, that change how a command works and not what it leaves."""


@dataclass(frozen=True, eq=False)
class Step:
    """A command and what it leaves.

    Attributes:
        name: short and unique in the recipe; names the log.
        command: a script of this environment (``fairseq-train``) or ``python``, and arguments.
        outputs: removed before the command runs, expected after it.
        after: steps whose output this one reads.
        threads: CPU threads the command may use, 0 for its own default.
        progress: makes a line to show out of a line of the log, or None.
        resumes: the command goes on from its outputs where it was stopped, and so does its log.
        inputs: files that the command reads and whose contents may change between two runs.
        work: what the command keeps beside its outputs for when it is run again, so that nothing in
            it is made twice; gone where all is to be run again.
        precious: once it is finished, another command does not take its outputs' place unasked.
        keeps_account: the command itself knows what its outputs were made of, and refuses where
            that is not what it is given. So it is asked again while its inputs are there, nothing
            is removed for it, and another command does not take their place either. Where all is to
            be run again it is told so, by ``--overwrite``.
    """

    name: str
    command: Sequence[str]
    outputs: Sequence[Path]
    after: Sequence[Step] = ()
    threads: int = 0
    progress: Callable[[str], str | None] = field(default=lambda line: None)
    resumes: bool = False
    inputs: Sequence[Path] = ()
    work: Sequence[Path] = ()
    precious: bool = False
    keeps_account: bool = False

    @property
    def is_to_be_asked(self) -> bool:
        """Whether the command can tell if its outputs are still of its inputs."""
        return self.keeps_account and bool(self.inputs) and all(p.exists() for p in self.inputs)


def executed_command(step: Step) -> list[str]:
    """The step's command with its program from the environment of this interpreter.

    Raises:
        UserError: the program is not installed there.
    """
    name, *arguments = step.command
    if name == "python":
        return [sys.executable, *arguments]
    # not resolved: the interpreter of a virtual environment is a link
    program = Path(sys.executable).parent / name
    if not program.exists():
        raise UserError(f"{program} is missing; install the package: pip install -e .")
    return [str(program), *arguments]


def shown_command(step: Step) -> str:
    """The step's command as a user would type it here."""
    program, *arguments = executed_command(step)
    words = [_shorter(program), *map(_shorter, arguments)]
    limits = [f"{name}={value}" for name, value in thread_limits(step).items()]
    # the variable must stay outside the quotes
    quoted = [
        word if word.startswith(f"${DATA_VARIABLE}/") else shlex.quote(word) for word in words
    ]
    return " ".join([*limits, *quoted])


def recorded_command(step: Step, out: Path) -> str:
    """:func:`shown_command` without the folders of this machine.

    ``out`` is OUT, one's own ~, and programs are those of the environment.
    """
    programs = _shorter(f"{Path(sys.executable).parent}{os.sep}")
    shown = shown_command(step).replace(programs, "", 1)
    for folder, name in ((out, "OUT"), (Path.home(), "~")):
        if folder.is_absolute() and folder != Path(folder.anchor):
            shown = re.sub(rf"(?<![\w./-]){re.escape(str(folder))}(?=[/\s'\"]|$)", name, shown)
    return shown


def portable_command(step: Step, out: Path) -> str:
    """The step's command without the folders of this machine.

    ``out`` is called OUT, and what is in the repository is named from there.
    """
    words = []
    for word in step.command:
        for folder, name in ((out, "OUT"), (ROOT, "")):
            if folder.parts and Path(word).parts[: len(folder.parts)] == folder.parts:
                word = str(name / Path(word).relative_to(folder))
        words.append(word)
    return shlex.join(words)


def identity(step: Step, out: Path) -> str:
    """What of a step's command decides what it leaves, on any machine.

    Inputs are called by the names of their files, as their contents are what counts.
    """
    names = {str(path): path.name for path in step.inputs}
    words, kept = iter(step.command), []
    for word in words:
        flag, joined, value = word.partition("=")
        if joined and flag in _WITHOUT_EFFECT:
            continue
        if word in _WITHOUT_EFFECT:
            for _ in range(_WITHOUT_EFFECT[word]):
                next(words, None)
        elif joined and value in names:
            # as where they are two words
            kept += [flag, names[value]]
        else:
            kept.append(names.get(word, word))
    return portable_command(replace(step, command=kept), out)


def thread_limits(step: Step) -> Mapping[str, str]:
    """Variables of the environment that keep a step's command to its threads."""
    return {"OMP_NUM_THREADS": str(step.threads)} if step.threads else {}


def _shorter(word: str) -> str:
    """A path relative to here or to the folder of the data, if that is what it is."""
    data = os.environ.get(DATA_VARIABLE)
    if data and word.startswith(f"{data.rstrip('/')}/") and re.fullmatch(r"[\w./-]+", word):
        return f"${DATA_VARIABLE}{word.removeprefix(data.rstrip('/'))}"
    here = f"{Path.cwd()}{os.sep}"
    return word.removeprefix(here)
