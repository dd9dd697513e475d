"""Options of layers that have a few values."""

from collections.abc import Sequence


def check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is none of an option's values.

    Raises:
        ValueError: names them.
    """
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got {value!r}")
