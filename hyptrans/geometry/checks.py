"""Checks of the options of spaces and layers."""

import math
from collections.abc import Sequence


def check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    """Check that ``value`` is one of an option's choices.

    Raises:
        ValueError: it is not; the message names the choices.
    """
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got {value!r}")


def check_curvature(c: float) -> None:
    """Check that ``-c`` is a negative curvature.

    Raises:
        ValueError: ``c`` is not above 0, or is infinite.
    """
    if not 0 < c < math.inf:
        raise ValueError(f"c must be above 0 and finite (the curvature is -c), got {c}")
