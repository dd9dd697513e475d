"""Reconstruct the command that trained a checkpoint from the options that it stores."""

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import ARCH_CONFIG_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from hyptrans.seq2seq.architectures import ARCHITECTURES

# options of the machine, and those that do not influence the parameters
_LEFT_OUT = {"arch", "cpu", "data", "device_id", "disable_validation", "distributed_num_procs"}
_LEFT_OUT |= {"distributed_world_size", "max_tokens_valid", "no_epoch_checkpoints", "num_workers"}
_LEFT_OUT |= {"no_progress_bar", "plasma_path", "restore_file", "stop_time_hours", "task"}
_LEFT_OUT |= {"tensorboard_logdir", "user_dir", "pad", "eos", "unk", "no_seed_provided"}
_BEGINNINGS_LEFT_OUT = ("_", "keep_", "log_", "save_", "validate_", "wandb_")
_GROUPS = ("common", "optimization", "dataset", "distributed_training", "checkpoint", "ema")
_CHOSEN = ("criterion", "optimizer", "lr_scheduler", "task")
_TASK = "translation"
"""The default task."""


def of(cfg: Any) -> str:
    """Return ``fairseq-train DATA …`` with every option that differs from its default.

    Folders of the machine and options that do not influence the parameters are left out.

    Args:
        cfg: the configuration of a checkpoint.
    """
    given = {group: _plain(cfg.get(group) or {}) for group in (*_GROUPS, *_CHOSEN, "model")}
    architecture = str(given["model"].get("arch") or given["model"].get("_name"))
    words = ["fairseq-train", "DATA", "--user-dir", "hyptrans", "--arch", architecture]
    for group in _CHOSEN:
        name = given[group].get("_name")
        if name not in (None, _TASK):
            words += [_flag(group), str(name)]
    found: dict[str, list[str]] = {}
    for group, values in given.items():
        name = architecture if group == "model" else values.get("_name")
        defaults = _defaults(group, name)
        ours = group == "model" and name in ARCHITECTURES
        # the default options of another plug-in are not known here
        for option in defaults or values:
            if option not in _LEFT_OUT and not option.startswith(_BEGINNINGS_LEFT_OUT):
                default = (defaults or {}).get(option)
                found[option] = _words(option, values.get(option), default, ours=ours)
    return shlex.join(sum((found[option] for option in sorted(found)), words))


def _defaults(group: str, name: Any) -> Mapping[str, Any] | None:
    """Return the default options of a group, or of the choice made for it."""
    known = {"model": MODEL_DATACLASS_REGISTRY, "task": TASK_DATACLASS_REGISTRY}
    known |= {name: entry["dataclass_registry"] for name, entry in REGISTRIES.items()}
    options = getattr(FairseqConfig(), group) if group in _GROUPS else known[group].get(name)
    if options is not None:
        made = vars(options if group in _GROUPS else options())
        # leave out options that refer to another group's option
        return {option: value for option, value in made.items() if "${" not in str(value)}
    if group == "model" and name in ARCH_CONFIG_REGISTRY:
        args = argparse.Namespace(arch=name)
        ARCH_CONFIG_REGISTRY[name](args)
        return vars(args)
    return None


def _plain(values: Any) -> dict[str, Any]:
    if OmegaConf.is_config(values):
        return dict(OmegaConf.to_container(values, enum_to_str=True))  # type: ignore[arg-type]
    return dict(values) if isinstance(values, dict) else dict(vars(values))


def _words(option: str, value: Any, default: Any, *, ours: bool) -> list[str]:
    value, default = _single(value), _single(default)
    if value is None or str(value) == str(default) or (value is False and default is None):
        return []
    if ours and not value and default is True:
        return [f"--no-{_flag(option).removeprefix('--')}"]
    if isinstance(value, bool):
        # fairseq names the switch of an option that is true by default like the option itself
        return [_flag(option)]
    number = isinstance(value, float)
    return [_flag(option), str(value).removesuffix(".0") if number else str(value)]


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _single(value: Any) -> Any:
    """Return the only value of a list of one, such as the rates; other values as they are."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value
