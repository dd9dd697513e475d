"""``python -m probing``: one command for every stage, and one for all of them."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from hyptrans.support.errors import run_command

PROGRAM = "python -m probing"


@dataclass(frozen=True)
class Command:
    """A command's module, which has ``add_arguments`` and ``main``, and its help."""

    module: str
    about: str
    example: str


COMMANDS = {
    "annotate": Command(
        "probing.commands.annotate",
        "parse plain text into dependency trees (CoNLL-U) with stanza",
        "annotate --text talks.en --lang en --out talks.conllu",
    ),
    "extract": Command(
        "probing.commands.extract",
        "write the states of an encoder for the words of a tree file, all layers",
        "extract --checkpoint hybonet/checkpoint_best.pt --data data --trees train.conllu "
        "--out train.safetensors",
    ),
    "train": Command(
        "probing.commands.train",
        "train distance and depth probes of all layers on states",
        "train --train-states train.safetensors --train train.conllu "
        "--dev-states dev.safetensors --dev dev.conllu --out probes.safetensors",
    ),
    "evaluate": Command(
        "probing.commands.evaluate",
        "choose layers on the development set and score them on the test set",
        "evaluate --probes probes.safetensors --dev-states dev.safetensors --dev dev.conllu "
        "--test-states test.safetensors --test test.conllu --out figures.json",
    ),
    "geometry": Command(
        "probing.commands.geometry",
        "how a model uses its space: radii, directions and Gromov's delta of every layer",
        "geometry --checkpoint hybonet/checkpoint_best.pt --data data --trees dev.conllu",
    ),
    "run": Command(
        "probing.commands.run",
        "all of it for one or more encoders: results.json, results.md and report.html; "
        "stages that an earlier run finished from the same inputs are not repeated",
        "run --checkpoint hybonet/checkpoint_best.pt --checkpoint twin/checkpoint_best.pt "
        "--data data --train train.conllu --dev dev.conllu --test test.conllu --out probes",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in COMMANDS:
        _overview().parse_args(words or ["--help"])
    return run_command(
        lambda: _run(words[0], words[1:]),
        stopped="",
        memory="lower --batch-size or --batch-tokens",
    )


def _run(name: str, words: Sequence[str]) -> None:
    module, parser = load(name)
    module.main(parser.parse_args(words))


def load(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """A command's module, only now imported as each has heavy packages of its own, and parser."""
    command = COMMANDS[name]
    module = importlib.import_module(command.module)
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {name}",
        description=command.about,
        epilog=f"example:\n  {PROGRAM} {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        # run takes more than one of what extract takes one of
        conflict_handler="resolve",
    )
    module.add_arguments(parser)
    return module, parser


def _overview() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<10}{command.about}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Structural probes: dependency trees out of the states of an encoder.",
        epilog=f"commands:\n{listed}\n\nexample:\n  {PROGRAM} {COMMANDS['run'].example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=list(COMMANDS), help="see COMMAND --help")
    return parser
