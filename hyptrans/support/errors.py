"""Errors a user can act on, and the one place where they become an exit status."""

import os
import re
import sys
import traceback
from collections.abc import Callable
from io import TextIOWrapper

from hyptrans.support.extras import how_to_install
from hyptrans_startup.errors import DISK_FULL, UserError, clean, clean_terminals

__all__ = [
    "UserError",
    "clean",
    "describe_os_error",
    "one_line",
    "out_of_memory",
    "run_command",
    "unquoted",
]

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
    open_closed_streams()
    _write_any_text()
    clean_terminals()
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
    """What is told of an error; None of a bug, or a module that no command needs."""
    if isinstance(error, KeyboardInterrupt):
        return f"\nstopped; {stopped}" if stopped else "\nstopped"
    if isinstance(error, UserError):
        return f"error: {one_line(str(error), _LONGEST_SENTENCE)}"
    if isinstance(error, OSError):
        return f"error: {describe_os_error(error, stopped)}"
    if out_of_memory(error):
        return f"error: not enough memory; {memory}"
    name = getattr(error, "name", None)
    hint = how_to_install(name)
    return None if hint is None else f"error: {name} is missing: {hint}"


def out_of_memory(error: BaseException) -> bool:
    """Whether memory did not suffice, that of Python or that of torch on any device."""
    if isinstance(error, RuntimeError):
        return _TORCH_OUT_OF_MEMORY.search(str(error)) is not None
    return isinstance(error, MemoryError)


def _write_any_text() -> None:
    """Let standard output spell out what the terminal's encoding lacks, as errors do already."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def open_closed_streams() -> None:
    """Put the null device where a standard stream is closed, as by ``<&-`` in a shell.

    Python has None there, and the next file to be opened would get what is meant for the stream.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - until the end
            # the lowest free number is the stream's own, and that goes to other processes too
            if stream.fileno() == number:
                os.set_inheritable(number, True)
            setattr(sys, name, stream)
