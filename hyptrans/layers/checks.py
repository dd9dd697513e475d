"""What layers check of their options."""

import math
from collections.abc import Sequence


def check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is none of an option's values.

    Raises:
        ValueError: names them.
    """
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got {value!r}")


def check_curvature(c: float) -> None:
    """Refuse a ``c`` of which ``-c`` is no negative curvature.

    Raises:
        ValueError: ``c`` is not above 0, or infinite.
    """
    if not 0 < c < math.inf:
        raise ValueError(f"c must be above 0 and finite (the curvature is -c), got {c}")
