"""Errors that a user can act on, and the one place where they become an exit status."""

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable
from io import TextIOWrapper

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# characters that neither XML nor HTML allows, and those that disguise a text by its direction
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_LINE_ENDS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
"""Line ends of ``str.splitlines``."""
_QUOTED = re.compile("`.*`", re.DOTALL)
_TORCH_OUT_OF_MEMORY = re.compile(r"out of memory|DefaultCPUAllocator: can't allocate memory")
"""Matches torch's RuntimeErrors of memory; on a CPU these have no class of their own."""
_LONGEST_SENTENCE = 2000


def clean(text: str) -> str:
    """Replace characters that no document may hold by U+FFFD; a terminal would act on some.

    Tabs and line ends stay.
    """
    return _CONTROL.sub("\ufffd", text)


class UserError(Exception):
    """The user's input cannot be used; one sentence says what is wrong and what to do.

    It may quote files and their names, so its text has no control characters.
    """

    def __str__(self) -> str:
        return clean(super().__str__())


def one_line(text: str, most: int | None = None) -> str:
    """Return an untrusted text as part of a line: passed through :func:`clean`, without line ends.

    Of a text of more than ``most`` characters only the beginning and the end stay.
    """
    text = clean(_LINE_ENDS.sub(" ", text))
    if most is None or len(text) <= most:
        return text
    return f"{text[: most // 2]} [...] {text[-(most // 2) :]}"


def unquoted(error: BaseException) -> str:
    """Return the message of a Rust library about a file, without its quotes from the file."""
    return _QUOTED.sub("[...]", str(error))


def run_command(
    main: Callable[[], object], *, stopped: str = "the same command continues where it stopped"
) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C.

    Only errors that a user can fix become a sentence, printed below their traceback if
    ``HYPTRANS_TRACEBACK=1``; a bug keeps its traceback.

    ``stopped`` says what a stop, by Ctrl-C or a full disk, means for the next run; may be empty.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # escape characters that the terminal's encoding lacks, as stderr already does
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main()
    except KeyboardInterrupt:
        sys.stderr.write(f"\nstopped; {stopped}\n" if stopped else "\nstopped\n")
        return 130
    except Exception as error:
        sentence = _sentence(error, stopped)
        if sentence is None:
            raise
        if os.environ.get("HYPTRANS_TRACEBACK") == "1":
            traceback.print_exc()
        sys.stderr.write(f"error: {one_line(sentence, _LONGEST_SENTENCE)}\n")
        return 2
    return 0


def _sentence(error: Exception, stopped: str) -> str | None:
    """Return the sentence for an error; None for a bug, or a module that no command needs."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        name, reason = error.filename, error.strerror or str(error)
        if error.errno in _DISK_FULL:
            reason = f"the disk is full or a size limit is reached ({reason}); free some space, "
            reason += f"then {stopped or 'run the same command again'}"
        name = os.fsdecode(name) if isinstance(name, bytes) else name
        return f"{name}: {reason}" if name else reason
    if out_of_memory(error):
        return "not enough memory; close other programs or lower the size of batches"
    from hyptrans.support.extras import how_to_install  # imports UserError from here

    name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    hint = how_to_install(name)
    return None if hint is None else f"{name} is missing: {hint}"


def out_of_memory(error: BaseException) -> bool:
    """Return whether Python, or torch on any device, ran out of memory."""
    if isinstance(error, RuntimeError):
        return _TORCH_OUT_OF_MEMORY.search(str(error)) is not None
    return isinstance(error, MemoryError)
