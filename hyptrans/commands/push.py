"""``hyptrans push``: upload a model folder to the Hugging Face hub."""

import argparse
import sys
from pathlib import Path

from hyptrans.support.logs import quiet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="folder that hyptrans export wrote")
    add("repository", metavar="REPO", help="user/name; created if it does not exist")
    add("--private", action="store_true", help="create a private repository")


def main(args: argparse.Namespace) -> None:
    """Upload the folder."""
    with quiet():
        from hyptrans.inference.sharing import hub

        address = hub.push(args.folder, args.repository, private=args.private)
    sys.stdout.write(f"{address}\n")
