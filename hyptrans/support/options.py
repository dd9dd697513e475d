"""Options of configurations, as dataclass fields."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any


def option(
    default: Any,
    about: str,
    *,
    in_formula: bool = False,
    of_size: bool = False,
    choices: Sequence[str] = (),
) -> Any:
    """A field that fairseq makes a flag of, with its help and default.

    ``in_formula``: parameters of the same shapes mean something else where its value is another, so
    that a training with it does not go on from a checkpoint without. ``of_size``: architectures
    have values of their own. ``choices``: what a text may be.
    """
    # switches tell their defaults by themselves, and texts those that follow something else
    if not isinstance(default, bool) and default is not None and "default" not in about:
        about += f" (default: {'as --arch has it' if of_size else default})"
    metadata = {"help": about, "in_formula": in_formula, "choices": tuple(choices)}
    return field(default=default, metadata=metadata)
