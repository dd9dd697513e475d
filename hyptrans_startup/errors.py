"""The one error for what a user can mend, and errors of the system that mean the same."""

import errno
import re
import sys
from collections.abc import Callable

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a full disk looks like: no space, a quota or a largest size of files reached."""
# what neither XML nor HTML takes in a text, and what overrides its direction to show another text
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

# of what a terminal acts on, only progress bars write these alone, and libraries colors
_MOVES = re.compile(r"[\n\r]*(\x1b\[A)*")
_COLORS = re.compile(r"\x1b\[[\d;]*m")


def clean(text: str) -> str:
    """The text with characters that no document may hold shown as U+FFFD; a terminal acts on some.

    Tabs and ends of lines stay.
    """
    return _CONTROL.sub("\ufffd", text)


def clean_terminals() -> None:
    """Let this process show terminals nothing that they act on, whatever a file has in it.

    Results, errors, logs and tracebacks are then written without colors, and otherwise as by
    :func:`clean`.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and stream.isatty():
            vars(stream)["write"] = _writer(stream.write)


def _writer(write: Callable[[str], int]) -> Callable[[str], int]:
    return lambda text: write(text if _MOVES.fullmatch(text) else clean(_COLORS.sub("", text)))


class UserError(Exception):
    """What the user gave cannot be used; one sentence says what, what was found, what to do.

    Parts of files and their names may be in it, so it shows no control characters.
    """

    def __str__(self) -> str:
        return clean(super().__str__())
