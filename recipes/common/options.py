"""Command-line options that the recipes share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from hyptrans.support.errors import UserError

DATA_VARIABLE = "HYPTRANS_DATA"
STOPPED = "the same command, without --overwrite, continues where it stopped"
"""What a stop of a recipe means for the next run."""


def script_parser(description: str | None, script: Path) -> argparse.ArgumentParser:
    """A parser with no options yet, of a recipe's folder or a file in it; shows text as it is."""
    name = f"{script.parent.name}.{script.stem}" if script.suffix else script.name
    return argparse.ArgumentParser(
        prog=f"python -m recipes.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_data(parser: argparse.ArgumentParser, contents: str, *, name: str = "") -> None:
    """Add ``--data``, a folder with these contents; by default ``name`` in HYPTRANS_DATA."""
    where = Path(DATA_VARIABLE) / name
    about = f"folder with {contents} ({where} if that variable is set)"
    parser.add_argument("--data", type=Path, default=default_data(name), metavar="DIR", help=about)


def default_data(name: str) -> Path | None:
    """A file or folder in that of HYPTRANS_DATA, if the variable is set."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder) / name if folder else None


def plain_or_zipped(path: Path) -> Path:
    """A file, or the gzipped one where there is only that."""
    zipped = path.with_name(f"{path.name}.gz")
    return zipped if zipped.is_file() and not path.is_file() else path


def check_positive(args: argparse.Namespace, *names: str) -> None:
    """Raise one UserError that names every option below 1."""
    given = {name: getattr(args, name) for name in names}
    wrong = [name for name, value in given.items() if value is not None and value < 1]
    if wrong:
        shown = ", ".join(f"--{name.replace('_', '-')} {given[name]}" for name in wrong)
        raise UserError(f"at least 1 is needed: {shown}")


def threads_of(jobs: int, models: int) -> int:
    """CPU threads of each command when that many run at the same time, or what the user set.

    0 where that says no number: each library makes of it what it can.
    """
    if "OMP_NUM_THREADS" in os.environ:
        # several numbers are of levels of nesting
        outermost = os.environ["OMP_NUM_THREADS"].partition(",")[0].strip()
        return int(outermost) if outermost.isdecimal() else 0
    return max(1, (os.cpu_count() or 1) // min(jobs, models))
