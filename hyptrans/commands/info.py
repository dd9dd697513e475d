"""``hyptrans info``: describe a model."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from hyptrans.commands.text_options import add_text_arguments, subword_models
from hyptrans.inference.load import MODEL_HELP, load
from hyptrans.inference.plugin import add_user_dir
from hyptrans.support.errors import one_line
from hyptrans.support.files import finite
from hyptrans.support.flags import add_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL_HELP)
    add_data(parser)
    add_user_dir(parser)
    add("--json", action="store_true", help="the same as JSON")
    add_text_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print the facts about a model.

    Raises:
        UserError: the model cannot be used.
    """
    subwords = subword_models(args)
    model = load(args.model, data=args.data, subword_models=subwords, moses=args.moses)
    # imported late, as it imports torch and fairseq
    from hyptrans.inference.describe import describe

    found = describe(model)
    if args.json:
        # JSON in ASCII has no characters that a terminal acts on
        sys.stdout.write(json.dumps(finite(found), indent=2) + "\n")
        return
    width = max(map(len, found))
    for name, value in found.items():
        for i, line in enumerate(_lines(value)):
            # the text of an untrusted folder may contain anything
            sys.stdout.write(f"{'' if i else name:<{width}}  {one_line(line)}\n")


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{name} {_plain(entry)}" for name, entry in value.items())
    elif isinstance(value, list):
        yield ", ".join(map(_plain, value))
    else:
        yield _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(entry)}" for name, entry in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
