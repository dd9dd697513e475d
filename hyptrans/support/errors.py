"""Errors a user can act on, and the one place where they become an exit status."""

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable
from io import TextIOWrapper

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a full disk looks like: no space, a quota or a largest size of files reached."""
# what neither XML nor HTML takes in a text, and what overrides its direction to show another text
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def clean(text: str) -> str:
    """The text with characters that no document may hold shown as U+FFFD; a terminal acts on some.

    Tabs and ends of lines stay.
    """
    return _CONTROL.sub("\ufffd", text)


class UserError(Exception):
    """What the user gave cannot be used; one sentence says what, what was found, what to do.

    Parts of files and their names may be in it, so it shows no control characters.
    """

    def __str__(self) -> str:
        return clean(super().__str__())


_MENDED_BY_THE_USER = (
    UserError,
    OSError,
    ModuleNotFoundError,
    MemoryError,
    RuntimeError,
    KeyboardInterrupt,
)
_TORCH_OUT_OF_MEMORY = re.compile(r"out of memory|DefaultCPUAllocator: can't allocate memory")
"""Of torch's RuntimeErrors, those of memory; on a CPU they are of no class of their own."""


_LINE_ENDS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
"""As ``str.splitlines`` has them."""
_QUOTED = re.compile("`.*`", re.DOTALL)
_LONGEST_NAME, _LONGEST_SENTENCE = 300, 2000
"""Characters of a file's name, and of a sentence, that are shown."""


def one_line(text: str, most: int | None = None) -> str:
    """What may be a stranger's text, as a part of a line: :func:`clean`, and without line ends.

    Args:
        text: the text.
        most: characters; of a longer text its beginning and its end are left.
    """
    text = clean(_LINE_ENDS.sub(" ", text))
    if most is None or len(text) <= most:
        return text
    return f"{text[: most // 2]} [...] {text[-(most // 2) :]}"


def unquoted(error: BaseException) -> str:
    """What a library in Rust says of a file, without the parts of the file that it quotes."""
    return _QUOTED.sub("[...]", str(error))


def describe_os_error(error: OSError, stopped: str = "") -> str:
    """Return one sentence for an error of the operating system.

    Args:
        error: what was raised.
        stopped: what a stop means for the next run, empty where it begins anew.
    """
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    where = f"{one_line(str(name), _LONGEST_NAME)}: " if name else ""
    if error.errno in DISK_FULL:
        return (
            f"{where}the disk is full or a size limit is reached ({error.strerror}); "
            f"free some space, then {stopped or 'run the same command again'}"
        )
    return f"{where}{one_line(str(error.strerror or error), _LONGEST_SENTENCE)}"


def run_command(
    main: Callable[[], object],
    *,
    stopped: str = "the same command continues where it stopped",
    memory: str = "close other programs or use a smaller training set",
) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C.

    Only errors a user can mend are turned into a sentence, below their traceback with
    ``HYPTRANS_TRACEBACK=1``; a bug keeps its traceback.

    Args:
        main: the command; what it returns is not looked at.
        stopped: what a stop, by Ctrl-C or a full disk, means for the next run, may be empty.
        memory: what to do where memory does not suffice.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # spell out what the terminal's encoding lacks, as errors do already
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main()
    except _MENDED_BY_THE_USER as error:
        sentence = _sentence(error, stopped, memory)
        if sentence is None:
            raise
        if os.environ.get("HYPTRANS_TRACEBACK") == "1":
            traceback.print_exc()
        sys.stderr.write(f"{sentence}\n")
        return 130 if isinstance(error, KeyboardInterrupt) else 2
    return 0


def _sentence(error: BaseException, stopped: str, memory: str) -> str | None:
    """The sentence for an error; None for a bug, or a module that no command needs."""
    if isinstance(error, KeyboardInterrupt):
        return f"\nstopped; {stopped}" if stopped else "\nstopped"
    if isinstance(error, UserError):
        return f"error: {one_line(str(error), _LONGEST_SENTENCE)}"
    if isinstance(error, OSError):
        return f"error: {describe_os_error(error, stopped)}"
    if out_of_memory(error):
        return f"error: not enough memory; {memory}"
    from hyptrans.support.extras import how_to_install  # imports UserError from here

    name = getattr(error, "name", None)
    hint = how_to_install(name)
    return None if hint is None else f"error: {name} is missing: {hint}"


def out_of_memory(error: BaseException) -> bool:
    """Whether memory did not suffice, that of Python or that of torch on any device."""
    if isinstance(error, RuntimeError):
        return _TORCH_OUT_OF_MEMORY.search(str(error)) is not None
    return isinstance(error, MemoryError)
