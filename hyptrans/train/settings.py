"""Settings of a training: defaults, the flags of ``hyptrans train``, and ``run.yaml``."""

import argparse
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support import flags
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole

FILE = "run.yaml"
RATES = {
    "euclidean": 5e-3,
    "han": 5e-3,
    "hvt": 1.2e-2,
    "hypformer": 2.5e-3,
}
"""Best learning rates in ``recipes/study`` (width 64, Multi30k) that differ from ``RATE``."""
RATE, DROPOUT = 1e-2, 0.2
"""Best learning rate there of all other architectures, and the best dropout of all."""
SCHEDULES = ("polynomial_decay", "inverse_sqrt", "noam", "fixed")
FREE = frozenset({"max_update", "patience", "device", "num_workers", "log_interval", "report_to"})
FREE |= {"user_dir"}
"""Settings that may change when a training is resumed."""


def setting(default: Any, about: str, **more: Any) -> Any:
    """Return a field that becomes a flag, with its help and other arguments of argparse."""
    return field(default=default, metadata={"help": about, **more})


@dataclass
class Settings:
    """All settings except the architecture's; flags are named as in fairseq."""

    lr: float | None = setting(
        None, "learning rate (default: the best of recipes/study)", type=float
    )
    lr_scheduler: str = setting("polynomial_decay", "schedule of the rate", choices=SCHEDULES)
    warmup_updates: int = setting(300, "updates in which the rate rises to --lr")
    max_update: int = setting(3000, "updates in all")
    max_tokens: int = setting(4096, "tokens of a batch on either side, padding included, a process")
    update_freq: int = setting(1, "batches that are accumulated for one update")
    clip_norm: float = setting(0.5, "largest norm of the gradient")
    label_smoothing: float = setting(0.1, "share of the probability that other tokens get")
    weight_decay: float = setting(0.0, "decoupled weight decay of parameters that are no points")
    adam_betas: tuple[float, float] = setting((0.9, 0.98), "betas of Adam", type=float, nargs=2)
    patience: int = setting(
        10, "validations without a better BLEU before the training stops; 0: never"
    )
    validate_interval_updates: int = setting(
        200, "fewest updates between two validations, which come at ends of epochs"
    )
    save_interval_updates: int = setting(
        500, "updates between two saves, the most that a kill loses"
    )
    keep_last_epochs: int = setting(
        5, "validations whose parameters are kept, and averaged at the end"
    )
    beam: int = setting(5, "beam of the validation's and the test's translations")
    seed: int = setting(1, "seed of parameters, batches and dropout", type=flags.seed, metavar="N")
    precision: str = setting(
        "float32",
        "of matrix products; float64: of all parameters, too",
        choices=("float32", "float64", "bf16", "fp16"),
    )
    device: str = setting("auto", "auto, cpu or cuda", type=flags.device, metavar="NAME")
    num_workers: int = setting(0, "processes that load batches")
    log_interval: int = setting(50, "updates between two logged losses")
    report_to: str = setting("none", "where losses go", choices=("none", "tensorboard", "wandb"))
    fsdp: str = setting(
        "",
        "shard parameters over processes; not with points",
        choices=("full_shard", "shard_grad_op"),
    )


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the flags of :class:`Settings`; a flag that is not given is None."""
    for one in dataclasses.fields(Settings):
        options = dict(one.metadata)
        shown = " ".join(map(str, one.default)) if isinstance(one.default, tuple) else one.default
        if one.default not in (None, "") and "default" not in options["help"]:
            options["help"] += f" (default: {shown})"
        if "choices" not in options:
            options.setdefault("type", type(one.default))
            options.setdefault("metavar", {float: "X", int: "N"}.get(options["type"], "NAME"))
        parser.add_argument(_flag(one.name), default=None, **options)


def add_options(parser: argparse._ActionsContainer, architecture: str) -> None:
    """Add the options of an architecture, as ``fairseq-train`` names them."""
    for one in dataclasses.fields(ARCHITECTURES[architecture].config):
        about = str(one.metadata.get("help", "")).replace("%", "%%")
        flag, default = _flag(one.name), one.default
        if isinstance(default, bool):
            # a negated flag turns off a switch that is on by default, as in fairseq
            flag = flag.replace("--", "--no-", 1) if default else flag
            parser.add_argument(
                flag, dest=one.name, action="store_const", const=not default, help=about
            )
            continue
        kind = type(default) if default is not None else int
        choices = one.metadata.get("choices") or None
        parser.add_argument(flag, dest=one.name, type=kind, choices=choices, help=about)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def default_rate(architecture: str) -> float:
    """Return the learning rate that the study found best for an architecture's family."""
    family = max((name for name in RATES if _is_of(architecture, name)), key=len, default="")
    return RATES.get(family, RATE)


def _is_of(architecture: str, family: str) -> bool:
    # euclidean_prenorm has a rate of its own
    others = [name for name in ("euclidean_prenorm", "euclidean_postnorm") if name != family]
    known = architecture == family or architecture.startswith(f"{family}_")
    return known and not any(architecture.startswith(other) for other in others)


def read(path: Path) -> dict[str, Any]:
    """Read the settings of a file.

    Raises:
        UserError: the file is missing or does not map names to values.
    """
    yaml = require("yaml", "transformers")
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be read as settings: {reason}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UserError(f"{path} is no list of settings: write one `name: value` a line")
    return found


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Write settings to a file, whole or not at all."""
    write_whole(path, require("yaml", "transformers").safe_dump(dict(values), sort_keys=False))


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Refuse to resume a training whose formulas, data or order would change.

    Raises:
        UserError: names the first setting that differs.
    """
    for name in sorted({*before, *now} - FREE):
        if before.get(name) != now.get(name):
            raise UserError(
                f"{path} says {name}: {before.get(name)}, and {now.get(name)} was given: a "
                "training goes on with the same settings; name another --out for a new one"
            )


def check(settings: Settings) -> None:
    """Refuse settings that are out of range.

    Raises:
        UserError: names the first of them.
    """
    least = {"warmup_updates": 0, "patience": 0, "seed": 0, "num_workers": 0}
    for one in dataclasses.fields(settings):
        value = getattr(settings, one.name)
        if isinstance(one.default, int) and not (
            isinstance(value, int) and value >= least.get(one.name, 1)
        ):
            raise UserError(
                f"{_flag(one.name)} must be at least {least.get(one.name, 1)}, got {value}"
            )
    if not 0 < settings.lr < math.inf:  # type: ignore[operator]
        raise UserError(f"--lr must be above 0 and finite, got {settings.lr}")
    for name in ("clip_norm", "weight_decay"):
        if not 0 <= getattr(settings, name) < math.inf:
            raise UserError(f"{_flag(name)} must be at least 0, got {getattr(settings, name)}")
    if not all(0 <= beta < 1 for beta in settings.adam_betas):
        raise UserError(f"--adam-betas must be from 0 to below 1, got {settings.adam_betas}")
    if not 0 <= settings.label_smoothing < 1:
        raise UserError(
            f"--label-smoothing must be at least 0 and below 1, got {settings.label_smoothing}"
        )
