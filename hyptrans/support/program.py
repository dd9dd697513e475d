"""A program of several commands: one list says where each is and what it does."""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from hyptrans.support.errors import run_command
from hyptrans.support.logs import quiet


@dataclass(frozen=True)
class Command:
    """A command's module, which has ``add_arguments`` and ``main``, and its help.

    Attributes:
        module: its name.
        about: what the command does.
        example: its name and some options.
        memory: what to do where memory does not suffice.
    """

    module: str
    about: str
    example: str
    memory: str = "close other programs"


@dataclass(frozen=True)
class Program:
    """A program; each command's module is imported only when it is asked for.

    Attributes:
        name: as it is typed.
        about: its help.
        commands: by name.
        stopped: what Ctrl-C means for the next run, may be empty.
        shown: the command whose example stands in the program's help; the first, if empty.
    """

    name: str
    about: str
    commands: Mapping[str, Command]
    stopped: str = ""
    shown: str = ""

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
        words = list(sys.argv[1:] if argv is None else argv)
        command = self.commands.get(words[0]) if words else None
        memory = command.memory if command else Command.memory
        try:
            return run_command(lambda: self._run(words), stopped=self.stopped, memory=memory)
        finally:
            _close_output()

    def load(self, name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
        """A command's module and parser."""
        command = self.commands[name]
        # fairseq logs, when it is imported, what it does without
        with quiet():
            module = importlib.import_module(command.module)
        parser = argparse.ArgumentParser(
            prog=f"{self.name} {name}",
            description=command.about,
            epilog=f"example:\n  {self.name} {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(parser)
        return module, parser

    def _run(self, words: Sequence[str]) -> None:
        if not words or words[0] not in self.commands:
            self._overview().parse_args(words or ["--help"])
        module, parser = self.load(words[0])
        try:
            module.main(parser.parse_args(words[1:]))
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader, such as head, has what it wanted
            return

    def _overview(self) -> argparse.ArgumentParser:
        lines = [f"  {name:<10}{command.about}" for name, command in self.commands.items()]
        shown = self.commands[self.shown or next(iter(self.commands))].example
        parser = argparse.ArgumentParser(
            prog=self.name,
            description=self.about,
            epilog="\n".join(["commands:", *lines, "", "example:", f"  {self.name} {shown}"]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.add_argument("command", choices=list(self.commands), help="see COMMAND --help")
        return parser


def _close_output() -> None:
    """Write out what is left; the interpreter would complain where nothing takes it any more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
