"""A program of several commands: one list gives the module and help of each."""

import argparse
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hyptrans import __version__
from hyptrans.support.errors import run_command
from hyptrans.support.logs import quiet

SPIN_COUNT = "1000"
"""Rounds for which a waiting thread of libgomp spins, as in fairseq's programs. The default takes
milliseconds, so that work on all cores gets many times slower as soon as another program runs."""


@dataclass(frozen=True)
class Command:
    """What defines ``main`` of a command, and its help.

    Attributes:
        module: name of the module, or ``module:OBJECT``.
        about: what the command does.
        example: its name and some options.
        stopped: what a stop, by Ctrl-C or a full disk, means for the next run; empty if that
            starts anew.
        options: ``module:function`` that adds the options, from a module that is faster to import
            than the command's own; by default ``add_arguments`` beside ``main``.
        by_words: whether this function also takes the typed words, on which the options depend,
            and returns those to parse.
    """

    module: str
    about: str
    example: str
    stopped: str = ""
    options: str = ""
    by_words: bool = False


@dataclass(frozen=True)
class Program:
    """A program; each command's module is imported only when it runs.

    Attributes:
        name: the name to type.
        about: its help.
        commands: its commands by name; the program's help shows the example of the first.
        programs: subprograms by name: the ``package.module:VARIABLE`` that holds one, and its
            purpose.
    """

    name: str
    about: str
    commands: Mapping[str, Command]
    programs: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
        words = list(sys.argv[1:] if argv is None else argv)
        if words and words[0] in self.programs:
            return self.within(words[0]).run(words[1:])
        command = self.commands.get(words[0]) if words else None
        try:
            return run_command(lambda: self._run(words), stopped=command.stopped if command else "")
        finally:
            _close_output()

    def within(self, name: str) -> "Program":
        """Return a subprogram under its full name, as typed here."""
        found: Program = pkgutil.resolve_name(self.programs[name][0])
        return replace(found, name=f"{self.name} {name}")

    def parser(
        self, name: str, words: Sequence[str] = ()
    ) -> tuple[argparse.ArgumentParser, Sequence[str]]:
        """Return a command's parser and the words to parse; ``words`` may decide its options."""
        command = self.commands[name]
        parser = self._parser(f"{self.name} {name}", command.about, ["example:", command.example])
        options = command.options
        add_arguments = _imported(options) if options else _imported(command.module).add_arguments
        if command.by_words:
            return parser, add_arguments(parser, words)
        add_arguments(parser)
        return parser, words

    def _run(self, words: Sequence[str]) -> None:
        if not words or words[0] not in self.commands:
            self._overview().parse_args(words or ["--help"])
        parser, given = self.parser(words[0], words[1:])
        args = parser.parse_args(given)
        try:
            _imported(self.commands[words[0]].module).main(args)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader, such as head, needs no more
            return

    def _overview(self) -> argparse.ArgumentParser:
        about = {name: command.about for name, command in self.commands.items()}
        for name, (_, said) in self.programs.items():
            about[name] = f"{said}; see {self.name} {name}"
        lines = [f"  {name:<10}{said}" for name, said in about.items()]
        shown = next(iter(self.commands.values())).example
        parser = self._parser(self.name, self.about, ["commands:", *lines, "", "example:", shown])
        parser.add_argument("--version", action="version", version=f"hyptrans {__version__}")
        parser.add_argument("command", choices=list(about), help="see COMMAND --help")
        return parser

    def _parser(self, name: str, about: str, below: Sequence[str]) -> argparse.ArgumentParser:
        """Return a parser whose help ends with the lines ``below``, the last one an example."""
        return argparse.ArgumentParser(
            prog=name,
            description=about,
            epilog="\n".join([*below[:-1], f"  {self.name} {below[-1]}"]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )


def _imported(name: str) -> Any:
    """Import a module or its object quietly: fairseq logs at import what it lacks."""
    with quiet():
        # without a colon, a module that one of its imports lacks would be an AttributeError
        return pkgutil.resolve_name(name if ":" in name else f"{name}:")


def _close_output() -> None:
    """Flush the output; the interpreter would complain at exit if its reader is gone."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
