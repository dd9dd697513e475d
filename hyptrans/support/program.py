"""A program of several commands: one list says where each is and what it does."""

import argparse
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hyptrans import __version__
from hyptrans.support.errors import run_command
from hyptrans.support.logs import quiet

SPIN_COUNT = "1000"
"""Rounds that a waiting thread of libgomp loops for, as in fairseq's programs: by default they take
milliseconds, and work on all cores gets many times slower as soon as another program runs."""


@dataclass(frozen=True)
class Command:
    """A command's module, which has ``main``, and its help.

    Attributes:
        module: its name.
        about: what the command does.
        example: its name and some options.
        memory: what to do where memory does not suffice.
        stopped: what Ctrl-C means for the next run, empty where it begins anew.
        options: ``module:function`` that adds its options, of a module that is imported sooner than
            the command's own; ``add_arguments`` of that one by default.
        by_words: that function takes what is typed, too, on which the options depend.
    """

    module: str
    about: str
    example: str
    memory: str = "close other programs"
    stopped: str = ""
    options: str = ""
    by_words: bool = False


@dataclass(frozen=True)
class Program:
    """A program; each command's module is imported only when it runs.

    Attributes:
        name: as it is typed.
        about: its help.
        commands: by name.
        programs: programs within, by name: ``package.module:VARIABLE`` that holds one, and what it
            is for.
        shown: the command whose example stands in the program's help; the first, if empty.
    """

    name: str
    about: str
    commands: Mapping[str, Command]
    programs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shown: str = ""

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
        words = list(sys.argv[1:] if argv is None else argv)
        if words[:1] == ["help"]:
            # as git has it
            words = [*words[1:], "--help"]
        if words and words[0] in self.programs:
            return self.within(words[0]).run(words[1:])
        command = self.commands.get(words[0]) if words else None
        memory, stopped = (command.memory, command.stopped) if command else (Command.memory, "")
        try:
            return run_command(lambda: self._run(words), stopped=stopped, memory=memory)
        finally:
            _close_output()

    def within(self, name: str) -> "Program":
        """A program within, under the name that it is typed by here."""
        found: Program = pkgutil.resolve_name(self.programs[name][0])
        return replace(found, name=f"{self.name} {name}")

    def parser(self, name: str, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        """A command's parser; ``words`` may decide its options."""
        command = self.commands[name]
        parser = self._parser(f"{self.name} {name}", command.about, ["example:", command.example])
        add_arguments = _imported(command.options or f"{command.module}:add_arguments")
        add_arguments(parser, words) if command.by_words else add_arguments(parser)
        return parser

    def _run(self, words: Sequence[str]) -> None:
        if not words or words[0] not in self.commands:
            self._overview().parse_args(words or ["--help"])
        args = self.parser(words[0], words[1:]).parse_args(words[1:])
        try:
            _imported(f"{self.commands[words[0]].module}:main")(args)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader, such as head, has what it wanted
            return

    def _overview(self) -> argparse.ArgumentParser:
        about = {name: command.about for name, command in self.commands.items()}
        about |= {
            name: f"{said}; see {self.name} {name}" for name, (_, said) in self.programs.items()
        }
        lines = [f"  {name:<10}{said}" for name, said in about.items()]
        shown = self.commands[self.shown or next(iter(self.commands))].example
        parser = self._parser(self.name, self.about, ["commands:", *lines, "", "example:", shown])
        parser.add_argument("--version", action="version", version=f"hyptrans {__version__}")
        parser.add_argument("command", choices=list(about), help="see COMMAND --help")
        return parser

    def _parser(self, name: str, about: str, below: Sequence[str]) -> argparse.ArgumentParser:
        """A parser whose help ends with some lines, the last of which is an example."""
        return argparse.ArgumentParser(
            prog=name,
            description=about,
            epilog="\n".join([*below[:-1], f"  {self.name} {below[-1]}"]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )


def _imported(name: str) -> Callable[..., None]:
    """What stands in a module; fairseq logs, when it is imported, what it does without."""
    with quiet():
        found: Callable[..., None] = pkgutil.resolve_name(name)
    return found


def _close_output() -> None:
    """Write out what is left; the interpreter would complain where nothing takes it any more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
