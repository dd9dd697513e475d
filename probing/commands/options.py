"""The options of every command; checking them does not load torch."""

import argparse
import shlex
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

from hyptrans.commands.text_options import add_text_arguments
from hyptrans.inference.plugin import add_user_dir
from hyptrans.support.flags import (
    add_device,
    add_out,
    add_overwrite,
    add_seed,
    positive,
)
from probing.settings import (
    BATCH_LINES,
    BATCH_TOKENS,
    KINDS,
    LEAST_IMPROVEMENT,
    PUNCTUATIONS,
    SENTENCES,
    SETS,
    Settings,
)


def annotate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``hyptrans probe annotate``."""
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="FILE", help="UTF-8 text, plain or gzipped")
    add_out(parser, "CoNLL-U to write", required=True)
    add("--lang", default="en", metavar="LANG", help="language of the text (default: %(default)s)")
    add(
        "--stanza-dir",
        type=Path,
        metavar="DIR",
        help="folder of stanza's models, with its resources.json (default: stanza's own)",
    )
    add(
        "--one-sentence-per-line",
        action="store_true",
        help="a line is a sentence (default: stanza looks for sentences inside of each line)",
    )
    add(
        "--pretokenized",
        action="store_true",
        help="words are separated by spaces, and a line is a sentence",
    )
    add(
        "--batch-size",
        type=positive,
        default=BATCH_LINES,
        metavar="N",
        help="lines parsed together (default: %(default)s)",
    )
    add_device(parser, None, "cuda where there is one")


def geometry(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``hyptrans probe geometry``."""
    add = parser.add_argument
    about = "checkpoint of fairseq, model folder, or name of a model of the package"
    add("--checkpoint", type=Path, required=True, metavar="PLACE", help=about)
    about = "folder that hyptrans prepare wrote for the model, or its data-bin"
    add("--data", type=Path, required=True, metavar="DIR", help=about)
    _add_encoding(parser)
    add("--subset", default="valid", metavar="NAME", help="set of --data (default: %(default)s)")
    add(
        "--sentences",
        type=positive,
        default=SENTENCES,
        metavar="N",
        help="most pairs of the set, and most trees, to look at (default: %(default)s)",
    )
    add(
        "--trees",
        type=Path,
        metavar="CONLLU",
        help="gold trees: look at the encoder's states of their words that are one token, as the "
        "report of probe run does, and at their depths",
    )
    add_out(parser, "figures to write, JSON")
    add_seed(parser, "of samples")


def run(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``hyptrans probe run``."""
    add = parser.add_argument
    _add_sources(parser)
    _add_encoding(parser)
    add("--names", nargs="+", metavar="NAME", help="labels (default: the checkpoints' folders)")
    for name, use in zip(SETS, ("train probes", "choose layers", "report"), strict=True):
        add(f"--{name}", type=Path, required=True, metavar="CONLLU", help=f"trees to {use} on")
    add_out(parser, "folder to write to", folder=True, required=True)
    add("--no-random", action="store_true", help="leave out encoders with fresh parameters")
    add(
        "--control",
        action="store_true",
        help="report selectivity: also train probes of control trees, in which each word type drew "
        "its head",
    )
    add_overwrite(
        parser, "make again what an earlier run in --out made, as after a change of the code"
    )
    add(
        "--punct",
        choices=PUNCTUATIONS,
        default="upos",
        help="what is punctuation, which UUAS and Root leave out: words tagged PUNCT in the column "
        "UPOS, one of seven Penn Treebank tags in XPOS, or none (default: %(default)s)",
    )
    _add_training(parser)
    add(
        "--seeds",
        type=positive,
        default=1,
        metavar="N",
        help="trainings of each probe, with seeds from --seed on; figures are then means, with "
        "their standard deviations (default: %(default)s)",
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`probing.commands.sources.sources_of` reads."""
    several = partial(parser.add_argument, action="append", default=[])
    several(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="checkpoint of fairseq; may be given several times",
    )
    several(
        "--hf",
        metavar="NAME_OR_FOLDER",
        help="encoder in Hugging Face's format: a folder of save_pretrained or of hyptrans export, "
        "or the name of a model of this package or of the hub, which is fetched unless it is in "
        "the cache; may be given several times",
    )
    several(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder that hyptrans prepare wrote for the checkpoint, or that of its dictionaries; "
        "one for all, or one for each (default: that of its training)",
    )


def _add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a checkpoint reads text, and where its encoder runs."""
    add_user_dir(parser)
    add_text_arguments(parser)
    parser.add_argument(
        "--batch-tokens",
        type=positive,
        default=BATCH_TOKENS,
        metavar="N",
        help="most tokens that the encoder takes at once (default: %(default)s)",
    )
    add_device(parser)


def _add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options of probe training, which :func:`settings_of` reads."""
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


def typed_command() -> str:
    """Return this process's command as one could type it again."""
    words = sys.argv[1:]
    return shlex.join(["hyptrans", *([] if words[:1] == ["probe"] else ["probe"]), *words])


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the training settings that the options give.

    Raises:
        UserError: a value is out of range.
    """
    names = [field.name for field in fields(Settings) if field.name in vars(args)]
    return Settings(**{name: getattr(args, name) for name in names})
