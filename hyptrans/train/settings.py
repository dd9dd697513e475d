"""Settings of a training: defaults, the flags of ``hyptrans train``, and ``run.yaml``."""

import argparse
import dataclasses
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from hyptrans.support.flags import device, positive, seed

FILE = "run.yaml"
RATES = {"euclidean": 5e-3, "han": 5e-3, "hvt": 1.2e-2, "hypformer": 2.5e-3}
"""Best learning rates in ``recipes/study`` (width 64, Multi30k) that differ from ``RATE``."""
RATE = 1e-2
"""Best learning rate there of all other architectures."""
DROPOUTS = {"dropout": 0.2, "attention_dropout": 0.0}
"""Best dropouts there of all architectures, whatever the defaults of their sizes are."""
SCHEDULES = {"polynomial_decay": "linear", "inverse_sqrt": "inverse_sqrt", "fixed": "constant"}
"""transformers' name of each schedule."""
DICTIONARIES = "dictionaries"
"""The entry of ``run.yaml`` with the fingerprints of both dictionaries, which no flag sets."""
FREE = {"max_update", "patience", "device", "log_interval", "report_to", "user_dir"}
"""Settings that may change when a training is resumed."""


def setting(default: Any, about: str, **more: Any) -> Any:
    """Return a field that becomes a flag, with its help and other arguments of argparse."""
    return field(default=default, metadata={"help": about, **more})


def _below(most: float, kind: type = float, *, above: bool = False) -> Callable[[str], Any]:
    """Return a parser of numbers from 0, or above it, to below ``most``, for argparse."""

    def number(text: str) -> Any:
        value = kind(text)
        if not (0 < value < most if above else 0 <= value < most):
            least = "above 0" if above else "at least 0"
            raise argparse.ArgumentTypeError(
                f"{text} must be {least} and {'finite' if most == math.inf else f'below {most}'}"
            )
        return value

    return number


@dataclass
class Settings:
    """All settings except the architecture's; flags are named as in fairseq."""

    lr: float | None = setting(
        None,
        "learning rate (default: the best of recipes/study)",
        type=_below(math.inf, above=True),
    )
    lr_scheduler: str = setting("polynomial_decay", "schedule of the rate", choices=[*SCHEDULES])
    warmup_updates: int = setting(
        300, "updates during which the rate rises to --lr", type=_below(math.inf, int)
    )
    max_update: int = setting(
        3000, "total number of updates; a larger one continues a finished run"
    )
    max_tokens: int = setting(
        4096, "maximum tokens in a process's batch, on either side, padding included"
    )
    update_freq: int = setting(1, "batches accumulated for one update")
    clip_norm: float = setting(0.5, "largest norm of the gradient", type=_below(math.inf))
    label_smoothing: float = setting(
        0.1, "probability spread over the other tokens", type=_below(1)
    )
    weight_decay: float = setting(
        0.0, "decoupled weight decay of parameters other than points", type=_below(math.inf)
    )
    patience: int = setting(
        10,
        "validations without a better BLEU before the training stops; 0: never",
        type=_below(math.inf, int),
    )
    validate_interval_updates: int = setting(
        200, "minimum updates between validations, which run at epoch ends"
    )
    save_interval_updates: int = setting(500, "updates between saves; a kill loses at most these")
    keep_last_epochs: int = setting(
        5, "last checkpoints to keep besides the best, and to average at the end"
    )
    beam: int = setting(5, "beam for the validation and test sets")
    seed: int = setting(1, "seed of parameters, batches and dropout", type=seed)
    precision: str = setting(
        "float32",
        "precision of matrix products; float64 also applies to all parameters",
        choices=("float32", "float64", "bf16", "fp16"),
    )
    device: str = setting("auto", "auto, cpu or cuda", type=device, metavar="NAME")
    log_interval: int = setting(50, "updates between logged losses")
    report_to: str = setting(
        "none", "where to log losses", choices=("none", "tensorboard", "wandb")
    )
    fsdp: str = setting(
        "",
        "shard parameters over processes; not with points",
        choices=("full_shard", "shard_grad_op"),
    )


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the flags of :class:`Settings`; a flag that is not given is None."""
    for one in dataclasses.fields(Settings):
        options = dict(one.metadata)
        if one.default not in (None, ""):
            options["help"] += f" (default: {one.default})"
        if "choices" not in options:
            # whole numbers are above 0 unless their setting says otherwise
            options = {"type": positive, "metavar": "N", **options}
        parser.add_argument(_flag(one.name), **options)


def add_options(parser: argparse._ActionsContainer, architecture: str) -> None:
    """Add the options of an architecture, as ``fairseq-train`` names them."""
    for one in dataclasses.fields(ARCHITECTURES[architecture].config):
        # of Optional[float], float
        kind = (typing.get_args(one.type) or (one.type,))[0]
        kind = positive if kind is int else kind
        how: dict[str, Any] = {"type": kind, "choices": one.metadata.get("choices") or None}
        if kind is bool:
            how = {"action": argparse.BooleanOptionalAction}
            if one.name.startswith("no_"):  # that action takes every --no-… for a false
                how = {"action": "store_const", "const": True}
        about = str(one.metadata.get("help", "")).replace("%", "%%")
        if one.name in DROPOUTS:
            about = about.replace("as --arch has it", str(DROPOUTS[one.name]))
        parser.add_argument(_flag(one.name), dest=one.name, default=None, help=about, **how)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def words(values: Mapping[str, Any]) -> list[str]:
    """Return settings as the words of a command line that sets them."""
    found = []
    for name, value in values.items():
        if isinstance(value, bool):
            # an option that begins with no_ has no flag for its default, false
            if value or not name.startswith("no_"):
                found.append(_flag(name if value else f"no_{name}"))
        elif value not in (None, "") and name != DICTIONARIES:
            found += [_flag(name), str(value)]
    return found


def default_rate(architecture: str) -> float:
    """Return the learning rate that the study found best for an architecture's family."""
    # these twins have rates of their own
    if architecture.startswith(("euclidean_prenorm", "euclidean_postnorm")):
        return RATE
    family = (name for name in RATES if f"{architecture}_".startswith(f"{name}_"))
    return RATES.get(next(family, ""), RATE)


def read(path: Path) -> dict[str, Any]:
    """Read the settings of a file.

    Raises:
        UserError: the file does not map names to values.
    """
    yaml = require("yaml", "transformers")
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be read as settings: {reason}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UserError(f"{path} is not a list of settings: write one `name: value` per line")
    return found


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Write settings to a file, whole or not at all.

    Raises:
        UserError: the file has other settings that a training must keep when it is resumed.
    """
    before = read(path) if path.exists() else values
    for name in sorted({*before, *values} - FREE):
        if before.get(name) != values.get(name):
            raise UserError(
                f"{path} says {name}: {before.get(name)}, got {values.get(name)}: a resumed "
                "training keeps its settings; name another --out for a new one"
            )
    write_whole(path, require("yaml", "transformers").safe_dump(dict(values), sort_keys=False))
