"""``hyptrans train``: train an architecture on a prepared data folder, and write a model folder."""

import argparse
import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyptrans.inference.dictionary import fingerprint
from hyptrans.inference.plugin import add_user_dir
from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.flags import add_out
from hyptrans.support.logs import quiet
from hyptrans.support.options import add_settings, given_settings
from hyptrans.train import settings as known
from hyptrans.train.settings import DICTIONARIES, FILE, Settings

MODEL = "model"
"""The model folder of a run."""
LONGER = "longer"
"""File in a run whose model has had fewer updates than the run is given now."""


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> list[str]:
    """Add the options of the command, and those of the architecture that ``words`` name.

    Returns:
        The words to parse: those of ``--config`` come before ``words``, which override them.
    """
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder that hyptrans prepare wrote")
    add_out(parser, "folder of the run; the same command resumes it", folder=True, required=True)
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    arch = "architecture and size, such as hybonet_plus_iwslt_d64; --help then lists its options"
    config = "settings by name, such as the run.yaml that every run writes; flags override them"
    for one in (parser, first):
        one.add_argument("--arch", metavar="NAME", help=arch)
        # the plug-in registers architectures that --arch may name
        add_user_dir(one)
        one.add_argument("--config", type=Path, metavar="FILE", help=config)
    add_settings(parser.add_argument_group("training"), Settings)
    every = list(words)
    # the command's own parser reports the error
    with contextlib.suppress(argparse.ArgumentError):
        file = first.parse_known_args(every)[0].config
        every = [*(known.words(known.read(file)) if file is not None else ()), *every]
        architecture = first.parse_known_args(every)[0].arch
        if architecture is not None:
            from hyptrans.inference.architecture import require_known

            options = parser.add_argument_group(f"options of {architecture}")
            known.add_options(options, require_known(architecture))
    return every


def main(args: argparse.Namespace) -> None:
    """Train, or resume; then write the model folder, and print its score and how to use it.

    Raises:
        UserError: a setting, the data or the folder of the run cannot be used.
    """
    for module in ("transformers", "accelerate"):
        require(module, "transformers")
    given = {name: value for name, value in vars(args).items() if value is not None}
    data, out = given.pop("data"), given.pop("out")
    given.pop("config", None)
    command = shlex.join(["hyptrans", "train", "DATA", *known.words(given), "--out", "RUN"])
    plugin, architecture = given.pop("user_dir", None), given.pop("arch", None)
    if architecture is None:
        raise UserError("no architecture was named: give --arch, such as hybonet_plus_iwslt_d64")
    settings = given_settings(args, Settings)
    if settings.lr is None:
        settings.lr = known.default_rate(architecture)
    own = {name: value for name, value in given.items() if not hasattr(settings, name)}
    options = known.default_dropouts(architecture) | own
    with quiet():
        from hyptrans.train.run import Run

        run = Run(settings, architecture, options, data, out)
    # of the processes that torchrun starts, only the first one writes
    first = os.environ.get("RANK", "0") == "0"
    with steps.alone(out) if first else contextlib.nullcontext():
        is_longer = run.is_longer()
        if first:
            fixed: dict[str, Any] = {"arch": architecture}
            if plugin not in (None, "hyptrans"):
                # works from any working directory
                is_path = Path(plugin).is_dir()
                fixed["user_dir"] = str(Path(plugin).resolve()) if is_path else plugin
            fixed[DICTIONARIES] = [fingerprint(one) for one in run.words]
            every = fixed | dataclasses.asdict(settings) | (run.config.options or {})
            known.write(out / FILE, every)
        model = out / MODEL
        # the model of fewer updates stays until the new one replaces it
        longer = out / LONGER
        if not model.is_dir() or longer.exists() or is_longer:
            if first and model.is_dir():
                longer.touch()
            run.train()
            if first:
                run.write(model, {**run.finish(), "command": command})
                longer.unlink(missing_ok=True)
        elif first:
            sys.stderr.write(
                f"{out} is finished: a larger --max-update or --patience continues it\n"
            )
        if first:
            _show(model, plugin)


def _show(folder: Path, plugin: str | None) -> None:
    from hyptrans.inference.sharing import folder as model_folder

    facts = model_folder.read(folder, with_parameters=False).facts
    for score in facts.get("scores", ()):
        sys.stdout.write(f"test {score['name']} {score['value']:.2f} {score['signature']}\n")
    words = ["hyptrans", "translate", str(folder), *known.words({"user_dir": plugin})]
    sys.stdout.write(f"{shlex.join(words)} < text > translations\n")
