"""Settings of a training: defaults, the flags of ``hyptrans train``, and ``run.yaml``."""

import argparse
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from hyptrans.support.flags import device, number, seed
from hyptrans.support.options import add_option, flag, setting

FILE = "run.yaml"
RATE, DROPOUT = 1e-2, 0.2
RATES = {"euclidean": 5e-3, "euclidean_prenorm": RATE}
RATES |= {"han": 5e-3, "hvt": 1.2e-2, "hypformer": 2.5e-3}
"""Best learning rates in ``recipes/study`` (width 64, Multi30k); ``RATE`` for other families."""
DROPOUTS = {"euclidean_postnorm": 0.1}
"""Best dropouts there; ``DROPOUT`` for other families, whatever the defaults of their sizes are."""
SCHEDULES = {"polynomial_decay": "linear", "inverse_sqrt": "inverse_sqrt", "fixed": "constant"}
"""transformers' name of each schedule."""
DICTIONARIES = "dictionaries"
"""The entry of ``run.yaml`` with the fingerprints of both dictionaries, which no flag sets."""
FREE = {"max_update", "patience", "device", "log_interval", "report_to", "user_dir"}
"""Settings that may change when a training is resumed."""

_whole = number(int, lambda n: n >= 0, "a whole number of at least 0")
_finite = number(float, lambda x: 0 <= x < math.inf, "at least 0 and finite")
_rate = number(float, lambda x: 0 < x < math.inf, "above 0 and finite")
_share = number(float, lambda x: 0 <= x < 1, "at least 0 and below 1")


@dataclass
class Settings:
    """All settings except the architecture's; flags are named as in fairseq."""

    lr: float | None = setting(None, "learning rate (default: the best of recipes/study)", _rate)
    lr_scheduler: str = setting("polynomial_decay", "schedule of the rate", choices=[*SCHEDULES])
    warmup_updates: int = setting(300, "updates during which the rate rises to --lr", _whole)
    max_update: int = setting(
        3000, "total number of updates; a larger one continues a finished run"
    )
    max_tokens: int = setting(
        4096, "maximum tokens in a process's batch, on either side, padding included"
    )
    update_freq: int = setting(1, "batches accumulated for one update")
    clip_norm: float = setting(0.5, "largest norm of the gradient", _finite)
    label_smoothing: float = setting(0.1, "probability spread over the other tokens", _share)
    weight_decay: float = setting(
        0.0, "decoupled weight decay of parameters other than points", _finite
    )
    patience: int = setting(
        10, "validations without a better BLEU before the training stops; 0: never", _whole
    )
    validate_interval_updates: int = setting(
        200, "minimum updates between validations, which run at epoch ends"
    )
    save_interval_updates: int = setting(500, "updates between saves; a kill loses at most these")
    keep_last_epochs: int = setting(
        5, "last checkpoints to keep besides the best, and to average at the end"
    )
    beam: int = setting(5, "beam for the validation and test sets")
    seed: int = setting(1, "seed of parameters, batches and dropout", seed)
    precision: str = setting(
        "float32",
        "precision of matrix products; float64 also applies to all parameters",
        choices=("float32", "float64", "bf16", "fp16"),
    )
    device: str = setting("auto", "auto, cpu or cuda", device, metavar="NAME")
    log_interval: int = setting(50, "updates between logged losses")
    report_to: str = setting(
        "none", "where to log losses", choices=("none", "tensorboard", "wandb")
    )
    fsdp: str = setting(
        "",
        "shard parameters over processes; not with points",
        choices=("full_shard", "shard_grad_op"),
    )


def add_options(parser: argparse._ActionsContainer, architecture: str) -> None:
    """Add the options of an architecture, as ``fairseq-train`` names them."""
    best = default_dropouts(architecture)
    for one in dataclasses.fields(ARCHITECTURES[architecture].config):
        add_option(parser, one, shown=best.get(one.name))


def words(values: Mapping[str, Any]) -> list[str]:
    """Return settings as the words of a command line that sets them."""
    found = []
    for name, value in values.items():
        if isinstance(value, bool):
            # an option that begins with no_ has no flag for its default, false
            if value or not name.startswith("no_"):
                found.append(flag(name if value else f"no_{name}"))
        elif value not in (None, "") and name != DICTIONARIES:
            found += [flag(name), str(value)]
    return found


def default_rate(architecture: str) -> float:
    """Return the learning rate that the study found best for an architecture's family."""
    return _of_family(architecture, RATES, RATE)


def default_dropouts(architecture: str) -> dict[str, float]:
    """Return the dropouts that the study found best for an architecture's family, by option."""
    return {"dropout": _of_family(architecture, DROPOUTS, DROPOUT), "attention_dropout": 0.0}


def _of_family(architecture: str, best: Mapping[str, float], otherwise: float) -> float:
    families = (name for name in best if f"{architecture}_".startswith(f"{name}_"))
    return best.get(max(families, key=len, default=""), otherwise)


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
    stored = read(path) if path.exists() else values
    for name in sorted({*stored, *values} - FREE):
        if stored.get(name) != values.get(name):
            raise UserError(
                f"{path} says {name}: {stored.get(name)}, got {values.get(name)}: a resumed "
                "training keeps its settings; name another --out for a new one"
            )
    write_whole(path, require("yaml", "transformers").safe_dump(dict(values), sort_keys=False))
