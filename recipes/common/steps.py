"""A command of a recipe, what it leaves, and how it is written: here, and anywhere."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
        after: names of the steps whose output this one reads.
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
    outputs: Sequence[Path] = ()
    after: Sequence[str] = ()
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

    @property
    def limits(self) -> Mapping[str, str]:
        """Variables of the environment that keep the command to its threads."""
        return {"OMP_NUM_THREADS": str(self.threads)} if self.threads else {}


def executed_command(step: Step) -> list[str]:
    """The step's command with its program from the environment of this interpreter."""
    name, *arguments = step.command
    # not resolved: the interpreter of a virtual environment is a link
    program = sys.executable if name == "python" else str(Path(sys.executable).parent / name)
    return [program, *arguments]


def shown_command(step: Step) -> str:
    """The step's command as a user would type it here."""
    limits = [f"{name}={value}" for name, value in step.limits.items()]
    words = (word.removeprefix(f"{Path.cwd()}{os.sep}") for word in executed_command(step))
    return " ".join([*limits, shlex.join(words)])


def portable_command(step: Step, out: Path) -> str:
    """The step's command without the folders of this machine.

    ``out`` is called OUT, the folder of HYPTRANS_DATA by that name and one's own ~; what is in the
    repository is named from there.
    """
    data = os.environ.get(DATA_VARIABLE)
    folders = {out: "OUT", ROOT: "", Path(data or ""): f"${DATA_VARIABLE}", Path.home(): "~"}
    return shlex.join(_portable(word, folders) for word in step.command)


def _portable(word: str, folders: Mapping[Path, str]) -> str:
    flag, joined, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    path = Path(value)
    for folder, name in folders.items():
        # "" and / hold everything
        if folder != Path(folder.anchor) and path.is_relative_to(folder):
            return f"{flag}{joined}{name / path.relative_to(folder)}"
    return word


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
