"""A recipe's preparation: one command of ``data-prep``, then the training commands to type next."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from recipes.common.settings import available, read_models
from recipes.common.steps import ROOT

SOURCE, TARGET = "en", "de"


def prepare(script: str, options: Sequence[str]) -> None:
    """Show and run a command of ``data-prep``; where it fails, its exit status is this program's.

    What it says of a failure, or of Ctrl-C, is all that there is to say.
    """
    print(f"$ {shlex.join(['python', f'data-prep/{script}', *options])}", flush=True)
    command = [sys.executable, str(ROOT / "data-prep" / script), *options]
    with subprocess.Popen(command) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            process.wait()
    if process.returncode:
        sys.exit(process.returncode)


def prepare_from_archive(recipe: Path, script: str, description: str | None) -> None:
    """The whole preparation of English to German by a script that knows where the text is from.

    Options that are not the recipe's own go to the script.
    """
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument(
        "--out", default=f"data/{recipe.name}", help="folder to write (default: %(default)s)"
    )
    args, others = parser.parse_known_args()
    options = ["--source-lang", SOURCE, "--target-lang", TARGET, "--out", args.out, *others]
    prepare(script, options)
    show_next(recipe, Path(args.out))


def training_commands(recipe: Path, data: Path) -> list[str]:
    """The ``fairseq-train`` line of each configuration of a recipe."""
    lines = []
    for model in read_models(recipe, available(recipe)):
        words = [
            "fairseq-train",
            str(data / "data-bin"),
            "--user-dir",
            "hyptrans",
            *model.flags_for(),
        ]
        lines.append(shlex.join([*words, "--save-dir", f"checkpoints/{recipe.name}/{model.name}"]))
    return lines


def show_next(recipe: Path, data: Path) -> None:
    """Print what to type next."""
    print("\nprepared; now train with one of\n")
    print("\n\n".join(training_commands(recipe, data)))
