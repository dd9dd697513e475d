"""What is said of a checkpoint that cannot be used."""

import textwrap
from typing import Any

from hyptrans_startup.errors import UserError


def shown(value: Any) -> str:
    """Return a value as text for a message, cut and without control characters."""
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def reason_of(error: BaseException) -> str:
    """Return the kind of an error and its words, cut to a part of a sentence."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 160)


def unreadable(path: str, reason: str) -> str:
    """Return the sentence for a file that is no checkpoint, or no longer one."""
    return (
        f"checkpoint {path} is cut short or was not written by fairseq "
        f"({textwrap.shorten(reason, 90)}); take another one or train again"
    )


def misfit(path: str, error: BaseException, way_on: str = "") -> str:
    """Return the sentence for parameters that do not belong to the model, with the first one."""
    if isinstance(error, UserError):
        named = str(error).startswith("checkpoint ")
        return str(error) if named else f"checkpoint {path} cannot be used: {error}"
    lines = str(error).splitlines()
    reason = textwrap.shorten(lines[1] if len(lines) > 1 else f"no {error}", 240)
    return (
        f"checkpoint {path} does not fit the model ({reason}); "
        f"use the --arch, the sizes and the dictionaries it was trained with{way_on}"
    )
