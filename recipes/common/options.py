"""Command-line options that the recipes share, and how they end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from hyptrans.support.errors import UserError


def make_parser(description: str, example: str, *, out: str, archs: str) -> argparse.ArgumentParser:
    """A parser with the shared options."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f"example: {example}",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    cores = os.cpu_count() or 1
    add = parser.add_argument
    add("--out", type=Path, default=Path(out), metavar="DIR", help="folder to write to")
    add("--archs", default=archs, metavar="A,B", help="architectures, separated by commas")
    add("--seed", type=int, default=1, help="seed of the training")
    add("--jobs", type=int, default=cores, metavar="N", help="models trained at the same time")
    add("--cpu", action="store_true", help="keep off the GPU")
    add("--write-readme", action="store_true", help="put results and table beside this file")
    add("--overwrite", action="store_true", help="run again what an earlier run finished")
    return parser


def script_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with no options yet, which shows a script's docstring as it is."""
    return argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def check_positive(args: argparse.Namespace, *names: str) -> None:
    """Raise one UserError that names every option below 1."""
    wrong = [f"--{name.replace('_', '-')} {getattr(args, name)}" for name in names]
    wrong = [text for text, name in zip(wrong, names, strict=True) if getattr(args, name) < 1]
    if wrong:
        raise UserError(f"at least 1 is needed: {', '.join(wrong)}")


def threads_of(jobs: int, models: int) -> int:
    """CPU threads of each command when that many run at the same time; 0: what the user set."""
    if "OMP_NUM_THREADS" in os.environ:
        return 0
    return max(1, (os.cpu_count() or 1) // min(jobs, models))


def run_recipe(main: Callable[[], None]) -> int:
    """Run a recipe and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
    try:
        main()
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on with the first unfinished step", file=sys.stderr)
        return 130
    return 0
