"""Options that several commands share."""

import argparse
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from hyptrans.support.flags import add_seed
from probing.probes.corpus import Corpus
from probing.probes.metrics import PUNCTUATIONS
from probing.probes.probe import KINDS
from probing.probes.training import LEAST_IMPROVEMENT, Settings
from probing.states.file import States
from probing.text.segment import Options as Pieces
from probing.text.trees import Sentence

Options = TypeVar("Options", Settings, Pieces)


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a training of probes depends on; :func:`settings_of` reads it."""
    default = Settings()

    def number(flag: str, about: str, metavar: str = "N", why: str = "") -> None:
        value = getattr(default, flag.removeprefix("--").replace("-", "_"))
        about += f" (default: %(default)s{why})"
        parser.add_argument(flag, type=type(value), default=value, metavar=metavar, help=about)

    parser.add_argument(
        "--probe",
        choices=KINDS,
        default=default.probe,
        help="lorentz, as the HyboNet paper's; poincare, as Chen et al.'s; euclidean, as Hewitt "
        "and Manning's (default: %(default)s)",
    )
    number("--rank", "coordinates of a probe's points, time included")
    number(
        "--steps",
        "most batches that every layer of every task is trained on",
        why="; the HyboNet paper: --steps 20000 --lr 5e-5",
    )
    number("--batch-size", "sentences in a batch")
    number(
        "--lr",
        f"Adam's learning rate, times {default.lr_factor:g} after {default.lr_patience + 1} looks "
        f"in a row at the development set without improvement by {100 * LEAST_IMPROVEMENT:g} %%",
        metavar="RATE",
        why=", chosen to learn within 2,000 steps",
    )
    number("--weight-decay", "Adam's L2 penalty", metavar="X")
    number("--evaluate-every", "steps between looks at the development set")
    number("--patience", "looks in a row without improvement that end a layer's training")
    add_seed(parser, "of initial weights and order of sentences", default.seed)


def check_counts(args: argparse.Namespace, *names: str) -> None:
    """Refuse options that count something and have nothing to count.

    Raises:
        UserError: names the first of them.
    """
    for name in names:
        if getattr(args, name) < 1:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} must be above 0, not {getattr(args, name)}")


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings that :func:`add_training_arguments` asked for.

    Raises:
        UserError: values out of range.
    """
    return filled(Settings, args)


def typed_command() -> str:
    """The command of this process, to be typed again."""
    program = ["hyptrans"] if sys.argv[1:2] == ["probe"] else ["python", "-m", "probing"]
    return shlex.join([*program, *sys.argv[1:]])


def filled(kind: type[Options], args: argparse.Namespace) -> Options:
    """A dataclass with the values of the flags that are named as its fields."""
    given = vars(args)
    names = [field.name for field in fields(kind) if field.name in given]
    return kind(**{name: given[name] for name in names})


def add_punct_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--punct``."""
    parser.add_argument(
        "--punct",
        choices=PUNCTUATIONS,
        default="upos",
        help="what is punctuation, which UUAS and Root leave out: words tagged PUNCT in the column "
        "UPOS, or one of seven Penn Treebank tags in XPOS (default: %(default)s)",
    )


def add_set_arguments(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add a file of states and one of trees for each data set."""
    for name in names:
        for flag, metavar, about in (
            (f"--{name}-states", "FILE", f"states of the {name} set, as extract writes them"),
            (
                f"--{name}",
                "CONLLU",
                f"trees of the {name} set, those that the states were extracted for",
            ),
        ):
            parser.add_argument(flag, type=Path, required=True, metavar=metavar, help=about)


def open_corpus(states_file: Path, trees: Path, sentences: list[Sentence]) -> Corpus:
    """States from a file beside their trees.

    Raises:
        UserError: no file of states, or of other trees.
    """
    states = States.open(states_file)
    contents = states.contents
    if contents.trees_sha256 != sha256(trees):
        raise UserError(
            f"{states_file} is of other trees ({contents.trees}) than {trees}; extract it again"
        )
    return Corpus(states, sentences, str(states_file))
