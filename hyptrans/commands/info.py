"""``hyptrans info``: describe a model."""

import argparse
import json
import sys

from hyptrans.commands.text_options import add_model, sources
from hyptrans.inference.load import load
from hyptrans.support.files import finite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_model(parser)


def main(args: argparse.Namespace) -> None:
    """Print the facts about a model as JSON."""
    model = load(args.model, **sources(args))
    # imported late, as it imports torch and fairseq
    from hyptrans.inference.describe import describe

    # ASCII has no characters that a terminal acts on; an untrusted folder may have any
    sys.stdout.write(json.dumps(finite(describe(model)), indent=2) + "\n")
