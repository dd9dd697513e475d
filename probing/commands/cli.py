"""``hyptrans probe``: its commands and their options; checking these does not load torch."""

import argparse
from functools import partial
from pathlib import Path

from hyptrans.commands.text_options import add_text_arguments
from hyptrans.inference.plugin import add_user_dir
from hyptrans.support.flags import add_device, add_out, add_overwrite, add_seed, positive
from hyptrans.support.options import add_settings
from hyptrans.support.program import Command, Program
from probing.settings import PUNCTUATIONS, SENTENCES, SETS, Settings


def add_annotate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``hyptrans probe annotate``."""
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="FILE", help="UTF-8 text, plain or gzipped")
    add_out(parser, "CoNLL-U to write", required=True)
    add("--lang", default="en", metavar="LANG", help="language of the text (default: %(default)s)")
    about = "folder of stanza's models, with its resources.json (default: stanza's own)"
    add("--stanza-dir", type=Path, metavar="DIR", help=about)
    about = "take each line as one sentence (default: stanza splits each line into sentences)"
    add("--one-sentence-per-line", action="store_true", help=about)
    about = "take each line as one sentence whose words are separated by spaces"
    add("--pretokenized", action="store_true", help=about)
    add_device(parser, None, "cuda where there is one")


def add_geometry(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``hyptrans probe geometry``."""
    add = parser.add_argument
    about = "checkpoint of fairseq, model folder, or name of a bundled model"
    add("--checkpoint", required=True, metavar="PLACE", help=about)
    about = "folder that hyptrans prepare wrote for the model, or its data-bin"
    add("--data", type=Path, required=True, metavar="DIR", help=about)
    add_user_dir(parser)
    add_device(parser)
    about = "data set in --data (default: %(default)s)"
    add("--subset", default="valid", metavar="NAME", help=about)
    about = "maximum number of pairs to measure (default: %(default)s)"
    add("--sentences", type=positive, default=SENTENCES, metavar="N", help=about)
    add_out(parser, "figures to write, JSON")
    add_seed(parser, "seed of samples")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``hyptrans probe run``."""
    add, several = parser.add_argument, partial(parser.add_argument, action="append", default=[])
    about = "checkpoint of fairseq; may be given several times"
    several("--checkpoint", type=Path, metavar="FILE", help=about)
    about = (
        "encoder in Hugging Face's format: a folder that save_pretrained or hyptrans export "
        "wrote, or the name of a bundled model or of one on the hub, which is downloaded unless "
        "cached; may be given several times"
    )
    several("--hf", metavar="NAME_OR_FOLDER", help=about)
    about = (
        "the checkpoint's data folder, from hyptrans prepare, or one with its dictionaries; "
        "one for all, or one for each (default: the one it was trained on)"
    )
    several("--data", type=Path, metavar="DIR", help=about)
    add_user_dir(parser)
    add_text_arguments(parser)
    add_device(parser)
    add("--names", nargs="+", metavar="NAME", help="labels (default: the encoders' folders)")
    for name, use in zip(SETS, ("train probes", "choose layers", "report"), strict=True):
        add(f"--{name}", type=Path, required=True, metavar="CONLLU", help=f"trees to {use} on")
    add_out(parser, "folder to write to", folder=True, required=True)
    add("--no-random", action="store_true", help="leave out encoders with fresh parameters")
    about = (
        "report selectivity: also train probes on control trees, in which a random draw for "
        "each word type decides its head"
    )
    add("--control", action="store_true", help=about)
    about = "repeat steps that an earlier run in --out finished, as after a code change"
    add_overwrite(parser, about)
    about = (
        "what counts as punctuation, which UUAS and Root ignore: words tagged PUNCT in column "
        "UPOS, one of seven Penn Treebank tags in XPOS, or none (default: %(default)s)"
    )
    add("--punct", choices=PUNCTUATIONS, default="upos", help=about)
    add_settings(parser, Settings)
    about = (
        "train each probe with N seeds, from --seed on; several give means and standard "
        "deviations (default: %(default)s)"
    )
    add("--seeds", type=positive, default=1, metavar="N", help=about)


PROGRAM = Program(
    "hyptrans probe",
    "Read dependency trees out of an encoder's states with structural probes.",
    {
        "run": Command(
            "probing.commands.run",
            "run the full probing pipeline for one or more encoders and write results.json, "
            "results.md and report.html; the same command resumes",
            "run --hf run/model --hf tatoeba-en-de "
            "--train train.conllu --dev dev.conllu --test test.conllu --out probes",
            options="probing.commands.cli:add_run",
        ),
        "annotate": Command(
            "probing.commands.annotate",
            "parse plain text into dependency trees (CoNLL-U) with stanza",
            "annotate --text talks.en --lang en --out talks.conllu",
            options="probing.commands.cli:add_annotate",
        ),
        "geometry": Command(
            "probing.commands.geometry",
            "measure how a model uses its space: radii, stress and Gromov's delta of every layer",
            "geometry --checkpoint hybonet/checkpoint_best.pt --data data",
            options="probing.commands.cli:add_geometry",
        ),
    },
)
main = PROGRAM.run
