"""Shared parts of commands that load a model: its options, and handling of long sentences."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyptrans.inference.load import MODEL_HELP
from hyptrans.inference.plugin import add_user_dir
from hyptrans.support.errors import UserError
from hyptrans.support.flags import add_data

if TYPE_CHECKING:
    from hyptrans.inference.options import SearchOptions
    from hyptrans.inference.results import Hypothesis
    from hyptrans.inference.text_translator import TextTranslator


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``MODEL`` and the options that say how to read it; :func:`sources` reads most of them."""
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    add_data(parser)
    add_user_dir(parser)
    add_text_arguments(parser)


def sources(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of :func:`hyptrans.load` that the options name."""
    return {"data": args.data, "subword_models": subword_models(args), "moses": args.moses}


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subword options as a group; :func:`subword_models` reads all but ``--moses``."""
    add = parser.add_argument_group("text processing, if no data folder records it").add_argument
    add("--sentencepiece-model", type=Path, metavar="FILE", help="sentencepiece model")
    add("--bpe-codes", type=Path, metavar="FILE", help="subword-nmt codes")
    add("--no-subwords", action="store_true", help="split tokens at spaces")
    moses = "with one of the above: tokenize and detokenize as Moses does"
    add("--moses", action="store_true", help=moses)


def subword_models(args: argparse.Namespace) -> dict[str, Path | None]:
    """Return the files of subword models that the options name, by kind."""
    named = {"sentencepiece": args.sentencepiece_model, "subword-nmt": args.bpe_codes}
    none = {"none": None} if args.no_subwords else {}
    return {kind: path for kind, path in named.items() if path} | none


def n_best(
    model: "TextTranslator", lines: list[str], n: int, options: "SearchOptions", done: int = 0
) -> list[list["Hypothesis"]]:
    """Translate lines; one that is too long for the model gets empty text and a warning.

    Warnings number the lines from ``done + 1``.
    """
    try:
        return model.n_best(lines, n, **options)
    except UserError:
        # the model refuses long sentences before it translates any
        if not (too_long := model.too_long(lines)):
            raise
    for i, tokens in too_long.items():
        sys.stderr.write(
            f"warning: line {done + i + 1} has {tokens:,} tokens, the model takes "
            f"{model.max_tokens:,}: its translation is left empty\n"
        )
    shorter = ["" if i in too_long else line for i, line in enumerate(lines)]
    return model.n_best(shorter, n, **options)
