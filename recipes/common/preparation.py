"""A recipe's preparation: one command of ``data-prep``, then the training commands to type next."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from recipes.common import options
from recipes.common.settings import available, read_models
from recipes.common.steps import ROOT

SOURCE, TARGET = "en", "de"


def prepare(recipe: Path, script: str, words: Sequence[str], out: Path) -> None:
    """Show and run a command of ``data-prep``, then print the training commands.

    Where the command fails, its exit status is this program's: what it says of a failure, or of
    Ctrl-C, is all that there is to say.
    """
    words = [f"data-prep/{script}", *words, "--out", str(out)]
    print(f"$ {shlex.join(['python', *words])}", flush=True)
    with subprocess.Popen([sys.executable, str(ROOT / words[0]), *words[1:]]) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            process.wait()
    if process.returncode:
        sys.exit(process.returncode)
    print("\nprepared; now train with one of\n")
    print("\n\n".join(training_commands(recipe, out)))


def prepare_from_archive(recipe: Path, script: str, description: str | None) -> None:
    """The whole preparation of English to German by a script that knows where the text is from.

    Options that are not the recipe's own go to the script.
    """
    parser = options.script_parser(description)
    about = "folder to write (default: %(default)s)"
    parser.add_argument("--out", type=Path, default=Path("data") / recipe.name, help=about)
    args, others = parser.parse_known_args()
    languages = ["--source-lang", SOURCE, "--target-lang", TARGET]
    prepare(recipe, script, [*languages, *others], args.out)


def training_commands(recipe: Path, data: Path) -> list[str]:
    """The ``fairseq-train`` line of each configuration of a recipe."""
    start = ["fairseq-train", str(data / "data-bin"), "--user-dir", "hyptrans"]
    commands = []
    for model in read_models(recipe, available(recipe)):
        flags = model.flags_for(model.flags.get("--max-update") or "{updates}")
        folder = f"checkpoints/{recipe.name}/{model.name}"
        commands.append(shlex.join([*start, *flags, "--save-dir", folder]))
    return commands
