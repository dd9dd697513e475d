"""``hyptrans score``: score translations against references."""

import argparse
import sys
from pathlib import Path

from hyptrans.evaluation import scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("output", type=Path, metavar="OUT", help=scores.TRANSLATIONS_HELP)
    scores.add_references(parser)
    add("--lowercase", action="store_true", help="ignore case")


def main(args: argparse.Namespace) -> None:
    """Print a line for each score."""
    (translations,), references, tokenize = scores.read(
        [args.output], args.references, args.tokenize
    )
    found = {
        "BLEU": scores.bleu(translations, references, lowercase=args.lowercase, tokenize=tokenize),
        "chrF": scores.chrf(translations, references, lowercase=args.lowercase),
    }
    for name, score in found.items():
        sys.stdout.write(f"{name} {score.value:.2f} {score.signature}\n")
