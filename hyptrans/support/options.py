"""Configuration options, as dataclass fields."""

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
    """Return a field that fairseq turns into a flag, with its help and default.

    ``in_formula``: another value changes the meaning of parameters without changing their shapes,
    so that a training refuses to resume from a checkpoint with another value. ``of_size``:
    architectures have values of their own. ``choices``: the allowed texts.
    """
    # a switch needs no default in its help; other texts state one that follows something else
    if not isinstance(default, bool) and default is not None and "default" not in about:
        about += f" (default: {'as --arch has it' if of_size else default})"
    metadata = {"help": about, "in_formula": in_formula, "choices": tuple(choices)}
    return field(default=default, metadata=metadata)
