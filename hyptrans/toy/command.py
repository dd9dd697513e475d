"""``hyptrans prepare toy``: write the toy treebank to a folder."""

import argparse
import sys

from hyptrans.support.flags import add_out, add_overwrite, add_seed, positive
from hyptrans.toy import treebank


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    defaults = treebank.Settings()
    add_out(parser, "folder to write", folder=True, required=True)
    sizes = {split: f"sentence pairs of the {split} set" for split in ("train", "valid", "test")}
    sizes["max_words"] = "longest sentence of either side in words, punctuation included"
    for name, about in sizes.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=_longest if name == "max_words" else positive,
            default=getattr(defaults, name),
            metavar="N",
            help=f"{about} (default: %(default)s)",
        )
    add_seed(parser, "decides every sentence", defaults.seed)
    add_overwrite(parser, "replace what is in the folder")


def _longest(text: str) -> int:
    """Parse a number of words, for argparse."""
    if positive(text) < treebank.LEAST_WORDS:
        raise argparse.ArgumentTypeError(f"{text} is not {treebank.LEAST_WORDS} or more")
    return int(text)


def main(args: argparse.Namespace) -> None:
    """Write the treebank, and print where."""
    settings = treebank.Settings(args.train, args.valid, args.test, args.max_words, args.seed)
    written = treebank.write(args.out, settings, overwrite=args.overwrite)
    sys.stdout.write(f"{args.out}: {'written' if written else 'already there, reused'}\n")
