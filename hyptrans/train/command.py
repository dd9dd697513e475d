"""``hyptrans train``: train an architecture on a prepared data folder, and write a model folder."""

import argparse
import dataclasses
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.inference.dictionary import fingerprint
from hyptrans.inference.plugin import add_user_dir, import_plugin
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import take_lock
from hyptrans.support.flags import add_out
from hyptrans.support.logs import quiet
from hyptrans.train import settings as known
from hyptrans.train.settings import FILE, Settings

MODEL = "model"
"""The model folder of a run."""
PLUGIN = "user_dir"
"""The setting that names the plug-in of an architecture."""


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    """Add the options of the command, and those of the architecture that ``words`` name."""
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder that hyptrans prepare wrote")
    about = "architecture and size, such as hybonet_plus_iwslt_d64; adds its options to --help"
    add("--arch", metavar="NAME", help=about)
    add_user_dir(parser)
    add_out(
        parser, "folder of the run; the same command goes on with it", folder=True, required=True
    )
    about = "settings by name, such as the run.yaml that every run writes; flags go before them"
    add("--config", type=Path, metavar="FILE", help=about)
    known.add_arguments(parser.add_argument_group("training"))
    architecture = _named(words)
    if architecture is not None:
        known.add_options(parser.add_argument_group(f"options of {architecture}"), architecture)


def _named(words: Sequence[str]) -> str | None:
    """Return the architecture that a command line or its configuration file names."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--arch")
    first.add_argument("--config", type=Path)
    # the plug-in registers architectures that --arch may name
    add_user_dir(first)
    try:
        found, _ = first.parse_known_args(words)
    except argparse.ArgumentError:
        return None  # the command's own parser reports the error
    if found.config is not None:
        kept = known.read(found.config)
        found.arch = found.arch or kept.get("arch")
        if found.user_dir is None and kept.get(PLUGIN) is not None:
            import_plugin(str(kept[PLUGIN]))
    if found.arch is None:
        return None
    from hyptrans.inference.architecture import require_known

    return require_known(found.arch)


def main(args: argparse.Namespace) -> None:
    """Train, or resume; then write the model folder, and print its score and how to use it.

    Raises:
        UserError: a setting, the data or the folder of the run cannot be used.
    """
    for module in ("transformers", "accelerate"):
        require(module, "transformers")
    given = {name: value for name, value in vars(args).items() if value is not None}
    data, out = given.pop("data"), given.pop("out")
    file = given.pop("config", None)
    chosen = {**(known.read(file) if file is not None else {}), **given}
    plugin = chosen.pop(PLUGIN, None)
    settings, architecture, options = _resolved(chosen)
    if not data.is_dir():
        raise UserError(f"{data} is not there: name a folder that hyptrans prepare wrote")
    out.mkdir(parents=True, exist_ok=True)
    # of the processes that torchrun starts, only the first one writes
    first = os.environ.get("RANK", "0") == "0"
    lock = take_lock(out / "lock", out) if first else None
    try:
        with quiet():
            from hyptrans.train.run import Run

            run = Run(settings, architecture, options, data, out)
        if first:
            fixed: dict[str, Any] = {"arch": architecture, **_place(plugin)}
            fixed["dictionaries"] = [fingerprint(one) for one in run.words]
            values = dataclasses.asdict(settings) | {"adam_betas": list(settings.adam_betas)}
            _keep(out, {**fixed, **values, **(run.config.options or {})})
        if not (out / MODEL).is_dir():
            run.train()
            if first:
                command = _command(architecture, settings, options, plugin)
                run.write(out / MODEL, {**run.finish(), "command": command})
        if first:
            _show(out / MODEL, plugin)
    finally:
        if lock is not None:
            os.close(lock)


def _resolved(chosen: dict[str, Any]) -> tuple[Settings, str, dict[str, Any]]:
    """Return the settings with their defaults, the architecture, and its given options."""
    architecture = chosen.pop("arch", None)
    if architecture is None:
        raise UserError("no architecture was named: give --arch, such as hybonet_plus_iwslt_d64")
    chosen.pop("dictionaries", None)
    names = {field.name for field in dataclasses.fields(Settings)}
    settings = Settings(**{name: value for name, value in chosen.items() if name in names})
    if settings.lr is None:
        settings.lr = known.default_rate(architecture)
    settings.adam_betas = tuple(settings.adam_betas)  # type: ignore[assignment]
    known.check(settings)
    options = {name: value for name, value in chosen.items() if name not in names}
    options.setdefault("dropout", known.DROPOUT)
    options.setdefault("attention_dropout", 0.0)
    return settings, architecture, options


def _keep(out: Path, every: Mapping[str, Any]) -> None:
    """Write ``run.yaml``, after comparing it with the settings that the run began with, if any."""
    if (out / FILE).exists():
        known.check_same(known.read(out / FILE), every, out / FILE)
    known.write(out / FILE, every)


def _place(plugin: str | None) -> dict[str, str]:
    """Return the setting of a plug-in, with a path that works from any working directory."""
    if plugin is None or plugin == "hyptrans":
        return {}
    return {PLUGIN: str(Path(plugin).resolve()) if Path(plugin).is_dir() else plugin}


def _command(
    architecture: str, settings: Settings, options: dict[str, Any], plugin: str | None
) -> str:
    """Return the command of a run with every setting that differs from its default."""
    usual = Settings()
    words = ["hyptrans", "train", "DATA", *_user_dir(plugin), "--arch", architecture]
    chosen = {n: v for n, v in vars(settings).items() if v != getattr(usual, n)} | options
    for name, value in chosen.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            words += [flag, *map(str, value if isinstance(value, tuple) else [value])]
    return shlex.join([*words, "--out", "RUN"])


def _user_dir(plugin: str | None) -> list[str]:
    return [] if plugin is None else ["--user-dir", plugin]


def _show(folder: Path, plugin: str | None) -> None:
    from hyptrans.inference.sharing import folder as model_folder

    facts = model_folder.read(folder, with_parameters=False).facts
    for score in facts.get("scores", ()):
        sys.stdout.write(f"test {score['name']} {score['value']:.2f} {score['signature']}\n")
    command = shlex.join(["hyptrans", "translate", str(folder), *_user_dir(plugin)])
    sys.stdout.write(f"{command} < text > translations\n")
