"""How far a stored training has come, as fairseq goes on from it: by name, type and bounds."""

import math
from collections.abc import Mapping
from typing import Any

from hyptrans_startup.checkpoints.sentences import shown

MOST_COUNTED = 1 << 31
"""Updates, epochs and batches of one, far beyond any training; seeds are made of them."""
_SCORES = ("best", "val_loss")


def check_progress(state: Mapping[str, Any], *, meters: bool = True) -> None:
    """Check what a training goes on from, before anything is made of it.

    Args:
        state: the parts of a checkpoint.
        meters: whether its statistics are gone on with, too.

    Raises:
        ValueError: names the part that is none.
    """
    for group in _part(_part(state, "last_optimizer_state", dict), "param_groups", list):
        _are_of(group, dict, "a group of parameters")
        for number in _part(group, "params", list):
            _are_of(number, int, "a parameter's number")
    last = (_part(state, "optimizer_history", list) or [{}])[-1]
    _are_of(last, dict, "optimizer_history")
    _is_count("num_updates", last.get("num_updates", 0))
    for name, value in _part(last, "lr_scheduler_state", dict).items():
        for number in value if isinstance(value, list | tuple) else [value]:
            _is_number(f"{name} of the schedule", number)
    extra = _part(state, "extra_state", dict)
    for name in _SCORES:
        _is_number(name, extra.get(name))
    seconds = extra.get("previous_training_time", 0)
    _is_number("previous_training_time", seconds)
    if seconds is None or not 0 <= float(seconds) < math.inf:
        raise ValueError(f"previous_training_time is {shown(seconds)}")
    iterator = _part(extra, "train_iterator", dict)
    for name, least in {"epoch": 1, "iterations_in_epoch": 0, "version": 1}.items():
        _is_count(name, iterator.get(name, least), least)
    if meters:
        _check_meters(_part(extra, "metrics", dict))


def _check_meters(groups: Any) -> None:
    """Check statistics: the name of a class, which fairseq calls, and its numbers."""
    from fairseq.logging import meters

    for group in groups.values():
        _are_of(group, list, "metrics")
        for entry in group:
            if not isinstance(entry, list | tuple) or len(entry) != 4:
                raise ValueError(f"a statistic is {shown(entry)}")
            priority, name, kind, values = entry
            owner = vars(meters).get(kind) if isinstance(kind, str) else None
            if not (isinstance(owner, type) and issubclass(owner, meters.Meter)):
                raise ValueError(
                    f"the statistic {shown(name)} is a {shown(kind)}, which is no meter"
                )
            _are_of(name, str, "the name of a statistic")
            _is_number(f"the place of {name}", priority)
            _are_of(values, dict, name)
            for part, value in values.items():
                # counts of n-grams are several numbers
                if not hasattr(value, "element_size"):
                    _is_number(f"{part} of {name}", value)


def _part(state: Mapping[str, Any], name: str, kind: type) -> Any:
    """A part of a state, empty where it has none."""
    found = state.get(name)
    if found is not None:
        _are_of(found, kind, name)
    return kind() if found is None else found


def _are_of(value: Any, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {shown(value)}")


def _is_number(name: str, value: Any) -> None:
    """Check a number, None where there is none yet; a tensor may be one."""
    one = hasattr(value, "element_size") and value.numel() == 1
    if not (value is None or one or isinstance(value, int | float)):
        raise ValueError(f"{name} is {shown(value)}")


def _is_count(name: str, value: Any, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= MOST_COUNTED:
        raise ValueError(f"{name} is {shown(value)}")
