"""What a checkpoint stores besides its tensors, checked before fairseq makes anything of it."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from hyptrans_startup import plugin
from hyptrans_startup.checkpoints.building import check_repeated
from hyptrans_startup.checkpoints.sentences import shown
from hyptrans_startup.checkpoints.types import fits
from hyptrans_startup.errors import UserError

MOST_PARTS = 400_000
"""Of a checkpoint, counted wherever they are referred to: a list may stand in itself many times."""
DEEPEST = 100
LONGEST_STRING = 100_000
INTERPOLATION = "${"

BOUNDS = {
    r"\w*layers?": (-1_000, 1_000),
    r"\w*heads": (1, 1_024),
    r"\w*(_dim|_channels|hidden_size)": (0, 1 << 20),
    r"\w*(positions|tokens_per_sample)": (0, 10_000_000),
    r"num_batch_buckets": (0, 100_000),
    r"\w*(dropout|layerdrop)": (0, 1),
    r"dict_size|beam|nbest|max_len_b|sampling_topk": (-1, 1_000_000),
}
"""Lowest and highest value of numbers, by the name of the option, far beyond any in use."""
MOST_POSITIONS_TIMES_WIDTH = 1 << 24
"""Numbers of a table of sinusoidal positions, which is made and not stored: four times those of
4,096 positions of width 1,024. fairseq computes some before torch can tell of them."""
_BOUNDS = [(re.compile(name), *bounds) for name, bounds in BOUNDS.items()]

_PLAIN_NAME = re.compile(r"[\w.+-]{1,100}")
_NAMES = {"_name", "arch", "task", "criterion", "optimizer", "lr_scheduler"}
_NAMES |= {"scoring", "bpe", "tokenizer", "simul_type"}
"""Options whose value is a registered name, which hydra would look up as a file otherwise."""

_PARTS_OF_A_CHECKPOINT = {
    "args": (Namespace, "options"),
    "cfg": (dict, "options"),
    "model": (dict, "parameters by name"),
    "extra_state": (dict, "the state of the training"),
    "optimizer_history": (list, "a list"),
    "task_state": (dict, "the state of the task"),
}


_FILE_OF_A_NEW_MODEL = "embed_path"
"""Options that end so name files that a training begins with: a stored model has its parameters."""
_POSITIONS = ("positions", "tokens_per_sample")
"""Options that end so are numbers of positions; models of language have the latter."""


def forget_files(state: dict[str, Any]) -> None:
    """Take out of a checkpoint the files that fairseq would read to build its model."""
    for options in (state.get("args"), (state.get("cfg") or {}).get("model")):
        for _, part in parts_of(options, "its options"):
            values = vars(part) if isinstance(part, Namespace) else part
            if isinstance(values, dict):
                files = [name for name in values if str(name).endswith(_FILE_OF_A_NEW_MODEL)]
                values.update(dict.fromkeys(files))


def check_checkpoint(state: Any) -> None:
    """Check a loaded checkpoint: its extent, its parts, its configuration.

    Raises:
        UserError: with what is wrong, without the name of the file.
    """
    if not isinstance(state, dict):
        raise UserError(f"it is a {type(state).__name__}, not the parts of a checkpoint by name")
    # slow to import, and of no use to commands that only name what is here
    from torch import Tensor

    every = [part for _, part in parts_of(state, "the checkpoint") if isinstance(part, Tensor)]
    check_repeated(every)
    for name, (kind, words) in _PARTS_OF_A_CHECKPOINT.items():
        if state.get(name) is not None and not isinstance(state[name], kind):
            raise UserError(f"its {name} is a {type(state[name]).__name__}, not {words}")
    tensors = [part for part in (state.get("model") or {}).values() if isinstance(part, Tensor)]
    # one that is not contiguous may repeat few numbers
    largest = max((part.numel() for part in tensors if part.is_contiguous()), default=0)
    for name in ("args", "cfg"):
        if state.get(name) is not None:
            check_configuration(state[name], name, largest)


def parts_of(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Go through all parts inside a value, each with the name under which it is found.

    Raises:
        UserError: too many, or too deep.
    """
    count, waiting = 0, [(where, value, 0)]
    while waiting:
        name, part, depth = waiting.pop()
        yield name, part
        inner = inside(name, part)
        count += len(inner)
        if count + len(waiting) > MOST_PARTS or depth > DEEPEST:
            raise UserError(f"{where} has parts in parts without end")
        waiting.extend((key, each, depth + 1) for key, each in inner)


def inside(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the parts of one value, those of a list under the name of the list."""
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(name, part) for part in value]
    return []


def check_configuration(configuration: Any, where: str, largest: int = 0) -> None:
    """Check a stored configuration: plain values within bounds, of the types of their options.

    Args:
        configuration: ``cfg`` or ``args`` of a checkpoint.
        where: which of them.
        largest: numbers of the largest tensor beside it; positions that are learned are stored.

    Raises:
        UserError: names the option, its value and what it may be.
    """
    positions, widths = [1], [1]
    for name, value in parts_of(configuration, where):
        check_value(name, value)
        if isinstance(value, int | float) and name.endswith(_POSITIONS):
            positions.append(int(value))
        elif isinstance(value, int) and name.endswith("_dim") and "ffn_" not in name:
            widths.append(value)
    if max(positions) * max(widths) > max(MOST_POSITIONS_TIMES_WIDTH, largest):
        raise UserError(f"its options ask for {max(positions)} positions of {max(widths)} numbers")
    for group, kinds, options in typed_groups(configuration):
        for name, value in options.items():
            if name in kinds and not fits(value, kinds[name]):
                raise UserError(f"its option {group}.{name} is {shown(value)}, of another type")


def check_value(name: str, value: Any) -> None:
    """Check one value of a configuration by what it is and what it is called."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise UserError(f"its option {name} has names that are no strings")
        for key in value:
            check_value("a name of an option", key)
    elif isinstance(value, str):
        check_string(name, value)
    elif isinstance(value, bool | Namespace | list | tuple | None):
        return
    elif isinstance(value, int | float):
        check_number(name, value)
    else:
        raise UserError(f"its option {name} is a {type(value).__name__}, not a plain value")


def check_string(name: str, value: str) -> None:
    """Check a string: no interpolation, no path for a name, and what it has of options."""
    if INTERPOLATION in value:
        raise UserError(
            f"its option {name} is {shown(value)}, which would be replaced by a value of your "
            "machine; stored configurations have none of these"
        )
    if len(value) > LONGEST_STRING:
        raise UserError(f"its option {name} is a string of {len(value)} characters")
    if name in _NAMES and value and not _PLAIN_NAME.fullmatch(value):
        raise UserError(f"its option {name} is {shown(value)}, which is no registered name")
    if name.endswith("_args") and value.lstrip().startswith("{"):
        try:
            options = json.loads(value)
        except (ValueError, RecursionError):
            return  # of a literal, not of JSON: what evaluates it, checks it
        for inner, part in parts_of(options, name):
            check_value(inner, part)
    elif bounds_of(name) and re.fullmatch(r"\s*[-+]?[\d_]{1,30}\s*", value):
        check_number(name, int(value))


def check_number(name: str, value: float) -> None:
    """Check a number against `BOUNDS`."""
    bounds = bounds_of(name)
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise UserError(
            f"its option {name} is {value}, and models have from {bounds[0]} to {bounds[1]}"
        )


def bounds_of(name: str) -> tuple[float, float] | None:
    """Return the bounds for an option of that name, None where there are none."""
    for pattern, low, high in _BOUNDS:
        if pattern.fullmatch(name):
            return low, high
    return plugin.bounds.get(name)


def typed_groups(configuration: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Pair the options of each group with their types, by name, as fairseq declares them.

    Names that are not registered are left out; who builds something of them finds that out.
    """
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    registered = {group: entry["registry"] for group, entry in REGISTRIES.items()}
    registered |= {"task": TASK_REGISTRY, "model": ARCH_MODEL_REGISTRY}
    flat = vars(configuration) if isinstance(configuration, Namespace) else None
    for group, field in FairseqConfig.__dataclass_fields__.items():
        stored = configuration.get(group) if flat is None else flat
        options = vars(stored) if isinstance(stored, Namespace) else stored
        if not isinstance(options, dict):
            continue
        if group not in registered:
            yield group, kinds_of(field.type), options
            continue
        given = options.get("arch" if group == "model" else group)
        name = given if flat is not None else options.get("_name", given)
        if isinstance(name, str) and name in registered[group]:
            yield group, kinds_of(registered[group][name]), options


def kinds_of(owner: Any) -> dict[str, Any]:
    """Return the types of the options of a dataclass, or of a class that declares its flags."""
    known = getattr(owner, "__dataclass", None) or owner
    if hasattr(known, "__dataclass_fields__"):
        return {name: field.type for name, field in known.__dataclass_fields__.items()}
    if not hasattr(owner, "add_args"):
        return {}
    parser = ArgumentParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    owner.add_args(parser)
    kinds: dict[str, Any] = {}
    for action in parser._actions:
        if isinstance(action.const, bool) and action.nargs == 0:
            kinds[action.dest] = bool
        elif action.type in (int, float, str) and action.nargs is None:
            kinds[action.dest] = action.type
    return kinds
