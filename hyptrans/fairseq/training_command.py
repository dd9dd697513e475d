"""The command that trained a checkpoint, from the options that it keeps."""

import argparse
import shlex
from typing import Any

from fairseq import options as fairseq_options
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from hyptrans.seq2seq.architectures import ARCHITECTURES

# where it was run, and what leaves the parameters as they are
_LEFT_OUT = {"arch", "cpu", "data", "device_id", "disable_validation", "distributed_num_procs"}
_LEFT_OUT |= {"distributed_world_size", "max_tokens_valid", "no_epoch_checkpoints", "num_workers"}
_LEFT_OUT |= {"no_progress_bar", "plasma_path", "restore_file", "stop_time_hours", "task"}
_LEFT_OUT |= {"tensorboard_logdir", "user_dir", "pad", "eos", "unk", "no_seed_provided"}
_BEGINNINGS_LEFT_OUT = ("_", "keep_", "log_", "save_", "validate_", "wandb_")
_GROUPS = ("common", "optimization", "dataset", "distributed_training", "checkpoint", "ema")
_CHOSEN = ("model", "criterion", "optimizer", "lr_scheduler", "task")
_TASK = "translation"
"""Where none is named."""


def of(cfg: Any) -> str:
    """``fairseq-train DATA …`` with every option that differs from its default.

    Folders of the machine and what has no influence on the parameters are left out.

    Args:
        cfg: the configuration of a checkpoint.
    """
    given: dict[str, Any] = {}
    for group in (*_GROUPS, *_CHOSEN):
        values = cfg.get(group)
        if values is not None:
            given |= _plain(values)
    architecture = given.get("arch") or _plain(cfg.model).get("_name")
    words = ["fairseq-train", "DATA", "--user-dir", "hyptrans", "--arch", str(architecture)]
    chosen = {group: _plain(cfg.get(group) or {}).get("_name") for group in _CHOSEN}
    known, own = list(words), set[str]()
    for group in ("criterion", "optimizer", "lr_scheduler", "task"):
        flag = [f"--{group.replace('_', '-')}", str(chosen[group])] if chosen[group] else []
        if chosen[group] != _TASK:
            words += flag
        known_names = TASK_REGISTRY if group == "task" else REGISTRIES[group]["registry"]
        if chosen[group] in known_names:
            known += flag
        else:
            # of another plug-in: what its options are by default is not known here
            own |= _plain(cfg.get(group) or {}).keys()
    defaults = dict.fromkeys(own) | _defaults(known)
    switches = set()
    if architecture in ARCHITECTURES:
        # fairseq's parser has no defaults of a model's own options
        defaults |= _model_defaults(str(architecture))
        switches = _switches(str(architecture))
    for name, value in sorted(given.items()):
        if name in defaults and name not in chosen and not _is_left_out(name):
            words += _words(name, value, defaults[name], switch=name in switches)
    return shlex.join(words)


def _model_defaults(architecture: str) -> dict[str, Any]:
    if ARCHITECTURES[architecture].parts is not None:
        return vars(MODEL_DATACLASS_REGISTRY[architecture]())
    args = argparse.Namespace(arch=architecture)
    ARCH_CONFIG_REGISTRY[architecture](args)
    return vars(args)


def _switches(architecture: str) -> set[str]:
    """Options that ``--no-NAME`` switches off."""
    parser = argparse.ArgumentParser(add_help=False)
    ARCH_MODEL_REGISTRY[architecture].add_args(parser)
    found = parser._actions
    return {one.dest for one in found if isinstance(one, argparse.BooleanOptionalAction)}


def _is_left_out(name: str) -> bool:
    return name in _LEFT_OUT or name.startswith(_BEGINNINGS_LEFT_OUT)


def _plain(values: Any) -> dict[str, Any]:
    if OmegaConf.is_config(values):
        return dict(OmegaConf.to_container(values, enum_to_str=True))  # type: ignore[arg-type]
    return dict(values) if isinstance(values, dict) else dict(vars(values))


def _defaults(words: list[str]) -> dict[str, Any]:
    """What each option is where the command does not say it."""
    parser = fairseq_options.get_training_parser()
    parsed = fairseq_options.parse_args_and_arch(parser, words[1:])
    found = parsed[0] if isinstance(parsed, tuple) else parsed
    return vars(found) if isinstance(found, argparse.Namespace) else dict(found)


def _words(name: str, value: Any, default: Any, *, switch: bool) -> list[str]:
    value, default = _single(value), _single(default)
    if value is None or str(value) == str(default) or (value is False and default is None):
        return []
    flag = f"--{name.replace('_', '-')}"
    if switch and not value:
        return [f"--no-{flag.removeprefix('--')}"]
    if isinstance(value, bool):
        # fairseq names the switch of what is true by default as the option itself
        return [flag]
    return [flag, str(value).removesuffix(".0") if isinstance(value, float) else str(value)]


def _single(value: Any) -> Any:
    """A list of one, as of the rates, is written as its only value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value
