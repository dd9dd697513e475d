"""Command-line options that the recipes share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from hyptrans.support.errors import UserError
from recipes.common import results

DATA_VARIABLE = "HYPTRANS_DATA"
STOPPED = "the same command, without --overwrite, continues where it stopped"
"""What a stop of a recipe means for the next run."""


def make_parser(
    recipe: Path,
    description: str | None,
    example: str,
    *,
    archs: str,
    updates: int | None,
    jobs: int | None = None,
) -> argparse.ArgumentParser:
    """A parser with the options of every recipe that trains.

    Args:
        recipe: its folder.
        description: what it does.
        example: some options.
        archs: default of ``--archs``.
        updates: default of ``--updates``; None: what each model's flags say.
        jobs: default of ``--jobs``; None: the number of cores.
    """
    parser = script_parser(description)
    parser.formatter_class = _WithDefaults
    parser.prog = f"python -m recipes.{recipe.name}"
    parser.epilog = f"example: {parser.prog} {example}"
    out = Path("runs") / recipe.name
    add = parser.add_argument
    add("--out", type=Path, default=out, metavar="DIR", help="folder to write to")
    add(
        "--archs",
        default=archs,
        metavar="A,B",
        help="models to train, of those in models.ini of this recipe, separated by commas",
    )
    add(
        "--updates",
        type=int,
        default=updates,
        metavar="N",
        help="optimizer steps of each training"
        + ("" if updates else " (default: as models.ini says)"),
    )
    add("--seed", type=int, default=1, help="seed of the training")
    add(
        "--average",
        type=int,
        default=1,
        metavar="N",
        help="translate with the average of the last N checkpoints of each training",
    )
    jobs = jobs or os.cpu_count() or 1
    add("--jobs", type=int, default=jobs, metavar="N", help="models trained at the same time")
    add("--cpu", action="store_true", help="keep off the GPU")
    if results.BEGIN in (recipe / "README.md").read_text(encoding="utf-8"):
        add("--write-readme", action="store_true", help="put results and table beside this file")
    parser.set_defaults(write_readme=False)
    add("--overwrite", action="store_true", help="run again what an earlier run finished")
    return parser


def add_data(parser: argparse.ArgumentParser, contents: str, *, name: str = "") -> None:
    """Add ``--data``, a folder with these contents; by default ``name`` in HYPTRANS_DATA."""
    where = Path(DATA_VARIABLE) / name
    parser.add_argument(
        "--data",
        type=Path,
        default=default_data(name),
        metavar="DIR",
        help=f"folder with {contents} ({where} if that variable is set)",
    )


def default_data(name: str) -> Path | None:
    """A file or folder in that of HYPTRANS_DATA, if the variable is set."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder) / name if folder else None


class _WithDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults that there are."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, "") else super()._get_help_string(action)


def script_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with no options yet, which shows a script's docstring as it is."""
    return argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


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
