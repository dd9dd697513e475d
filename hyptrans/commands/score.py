"""``hyptrans score``: score translations against references."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from hyptrans.evaluation import scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("output", type=Path, metavar="OUT", help=scores.TRANSLATIONS_HELP)
    add("references", type=Path, metavar="REF", help="raw references, one a line")
    scores.add_tokenize(parser)
    add("--lowercase", action="store_true", help="ignore case")
    add("--json", action="store_true", help="the same as JSON")


def main(args: argparse.Namespace) -> None:
    """Print a line for each score.

    Raises:
        UserError: the files do not belong together, or the tokenizer is not installed.
    """
    references = scores.read_references(args.references)
    translations = scores.read_translations(args.output)
    scores.check_lengths(translations, args.output, references, args.references)
    tokenize = scores.tokenizer_of(args.references, references, args.tokenize)
    found = {
        "BLEU": scores.bleu(translations, references, lowercase=args.lowercase, tokenize=tokenize),
        "chrF": scores.chrf(translations, references, lowercase=args.lowercase),
    }
    if args.json:
        made = {name: asdict(score) for name, score in found.items()}
        sys.stdout.write(json.dumps(made, indent=2) + "\n")
        return
    for name, score in found.items():
        sys.stdout.write(f"{name} {score.value:.2f} {score.signature}\n")
