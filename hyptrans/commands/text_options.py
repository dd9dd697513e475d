"""Options that say how a checkpoint's text became subwords, where its data folder does not."""

import argparse
from pathlib import Path


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them in a group of their own; :func:`subword_models` reads all but ``--moses``."""
    add = parser.add_argument_group("text, where the data folder does not say it").add_argument
    add("--sentencepiece-model", type=Path, metavar="FILE", help="its model")
    add("--bpe-codes", type=Path, metavar="FILE", help="codes of subword-nmt")
    add("--no-subwords", action="store_true", help="tokens stand between spaces")
    moses = "with one of these: tokenize and detokenize as Moses does"
    add("--moses", action="store_true", help=moses)


def subword_models(args: argparse.Namespace) -> dict[str, Path | None]:
    """Files of subword models by kind, as named by options."""
    found: dict[str, Path | None] = {}
    if args.sentencepiece_model:
        found["sentencepiece"] = args.sentencepiece_model
    if args.bpe_codes:
        found["subword-nmt"] = args.bpe_codes
    if args.no_subwords:
        found["none"] = None
    return found
