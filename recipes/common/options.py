"""Command-line options that the recipes share."""

import argparse
import os
from pathlib import Path

from hyptrans.support import flags
from hyptrans.support.errors import UserError
from recipes.common import results
from recipes.common.commands import DATA_VARIABLE


def script_parser(description: str | None, script: Path) -> argparse.ArgumentParser:
    """Return a parser without options for a recipe (its folder) or a script in that folder."""
    name = f"{script.parent.name}.{script.stem}" if script.suffix else script.name
    return argparse.ArgumentParser(
        prog=f"python -m recipes.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def recipe_parser(recipe: Path, description: str | None, example: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every recipe that records lines."""
    parser = script_parser(description, recipe)
    parser.epilog = f"example: {parser.prog} {example}"
    add = parser.add_argument
    about, out = "folder to work in (default: %(default)s)", Path("runs") / recipe.name
    flags.add_out(parser, about, folder=True, default=out)
    if results.BEGIN in (recipe / "README.md").read_text(encoding="utf-8"):
        about = "continue the results in the recipe's folder"
        add("--write-readme", action="store_true", help=about)
    parser.set_defaults(write_readme=False)
    add("--only", nargs="+", metavar="NAME", help="trainings to run, as --list names them")
    add("--list", action="store_true", help="list the trainings and which are done, then exit")
    return parser


def add_number(parser: argparse.ArgumentParser, flag: str, default: int | None, about: str) -> None:
    """Add an option for a positive integer; ``about`` must describe a default of None."""
    about += "" if default is None else " (default: %(default)s)"
    parser.add_argument(flag, type=flags.positive, default=default, metavar="N", help=about)


def add_data(parser: argparse.ArgumentParser, contents: str, *, name: str = "") -> None:
    """Add ``--data``, a folder with ``contents``; the default is ``name`` in HYPTRANS_DATA."""
    where = Path(DATA_VARIABLE) / name
    about = f"folder with {contents} ({where} if that variable is set)"
    parser.add_argument("--data", type=Path, default=default_data(name), metavar="DIR", help=about)


def default_data(name: str) -> Path | None:
    """Return the path of ``name`` in the folder HYPTRANS_DATA, or None if it is not set."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder) / name if folder else None


def required(data: Path | None, what: str, repository: str) -> Path:
    """Return the folder of ``--data``.

    Raises:
        UserError: the option is missing; the message names the contents and where they are from.
    """
    if data is None:
        where = f"https://github.com/{repository}"
        raise UserError(f"--data is needed: a folder with {what}, from {where}")
    return data


def file(data: Path, name: str) -> Path:
    """Return the path of a file in the folder of ``--data``, or of its gzipped copy.

    Raises:
        UserError: both are missing.
    """
    plain, zipped = data / name, data / f"{name}.gz"
    for path in (plain, zipped):
        if path.is_file():
            return path
    raise UserError(f"--data: {plain} and {zipped.name} are both missing")
