"""Options that several commands share."""

import argparse
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.probes.corpus import Corpus
from probing.probes.metrics import PUNCTUATIONS
from probing.probes.probe import KINDS
from probing.probes.training import Settings
from probing.states.file import States
from probing.text.trees import Sentence


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a training of probes depends on; :func:`settings_of` reads it."""
    add, default = parser.add_argument, Settings()
    add(
        "--probe",
        choices=KINDS,
        default=default.probe,
        help="lorentz, as the HyboNet paper's; poincare, as Chen et al.'s; euclidean, as Hewitt "
        "and Manning's (default: %(default)s)",
    )
    add(
        "--rank",
        type=int,
        default=default.rank,
        metavar="N",
        help="coordinates of a probe's points, time included (default: %(default)s)",
    )
    add(
        "--steps",
        type=int,
        default=default.steps,
        metavar="N",
        help="most batches that every layer of every task is trained on (default: %(default)s; the "
        "HyboNet paper: --steps 20000 --lr 5e-5)",
    )
    add(
        "--batch-size",
        type=int,
        default=default.batch_size,
        metavar="N",
        help="sentences in a batch (default: %(default)s)",
    )
    add(
        "--lr",
        type=float,
        default=default.lr,
        metavar="RATE",
        help=f"Adam's learning rate, times {default.lr_factor:g} after {default.lr_patience + 1} "
        "looks in a row at the development set without improvement (default: %(default)s, chosen "
        "to learn within 2,000 steps)",
    )
    add(
        "--weight-decay",
        type=float,
        default=default.weight_decay,
        metavar="X",
        help="Adam's L2 penalty (default: %(default)s)",
    )
    add(
        "--evaluate-every",
        type=int,
        default=default.evaluate_every,
        metavar="N",
        help="steps between looks at the development set (default: %(default)s)",
    )
    add(
        "--patience",
        type=int,
        default=default.patience,
        metavar="N",
        help="looks in a row without improvement that end a layer's training "
        "(default: %(default)s)",
    )
    add(
        "--seed",
        type=int,
        default=default.seed,
        metavar="N",
        help="of initial weights and order of sentences (default: %(default)s)",
    )


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings that :func:`add_training_arguments` asked for.

    Raises:
        UserError: values out of range.
    """
    return Settings(
        probe=args.probe,
        rank=args.rank,
        steps=args.steps,
        batch_size=args.batch_size,
        lr=args.lr,
        weight_decay=args.weight_decay,
        evaluate_every=args.evaluate_every,
        patience=args.patience,
        seed=args.seed,
    )


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
        parser.add_argument(
            f"--{name}-states",
            type=Path,
            required=True,
            metavar="FILE",
            help=f"states of the {name} set, as extract writes them",
        )
        parser.add_argument(
            f"--{name}",
            type=Path,
            required=True,
            metavar="CONLLU",
            help=f"trees of the {name} set, those that the states were extracted for",
        )


def open_corpus(states_file: Path, trees: Path, sentences: list[Sentence]) -> Corpus:
    """States from a file beside their trees.

    Raises:
        UserError: no file of states, or of other trees.
    """
    states = States.open(states_file)
    if states.trees_sha256 != sha256(trees):
        raise UserError(
            f"{states_file} is of other trees ({states.trees}) than {trees}; extract it again"
        )
    return Corpus(states, sentences, str(states_file))
