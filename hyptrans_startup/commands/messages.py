"""Errors of the ``fairseq-*`` commands in one sentence, where fairseq shows a traceback.

Nothing here changes what a command does with good input. ``HYPTRANS_TRACEBACK=1`` brings the
tracebacks back.
"""

import os
import sys
from pathlib import Path
from typing import Any

from hyptrans_startup import plugin
from hyptrans_startup.checkpoints import saving
from hyptrans_startup.errors import DISK_FULL, UserError, clean
from hyptrans_startup.wrapping import Call

LONGEST_NAME = 300
"""Characters of a file's name that are shown."""
STOPPED = 130
"""The exit status after Ctrl-C, as a shell has it."""


def one_sentence(run: Call, *args: Any, **kwargs: Any) -> Any:
    """A traceback of dozens of lines for a mistake in what was typed, in all eight commands.

    Standard output shows a terminal nothing that it acts on: a dictionary may have such words.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        write = sys.stdout.write
        vars(sys.stdout)["write"] = lambda text: write(clean(text))
    try:
        return run(*args, **kwargs)
    except (KeyboardInterrupt, Exception) as error:
        program = Path(sys.argv[0])
        stopped = isinstance(error, KeyboardInterrupt)
        sentence = when_stopped(program.stem) if stopped else explain(error)
        if sentence is None or os.environ.get("HYPTRANS_TRACEBACK") == "1":
            raise
        sys.stdout.flush()
        if not stopped:
            sys.exit(f"{program.name}: error: {sentence}")
        sys.stderr.write(f"\n{program.name}: {sentence}\n")
        sys.exit(STOPPED)


def when_stopped(program: str) -> str:
    """Return what Ctrl-C means for the next run of a program."""
    if not program.endswith("train"):
        return "stopped"
    if saving.written:
        stem = Path(saving.LAST).stem
        last = [path for path in saving.written if Path(path).name.startswith(stem)]
        if last:
            return f"stopped; {last[-1]} is saved, and the same command goes on from there"
        return f"stopped; {saving.written[-1]} is saved, --restore-file newest goes on from there"
    return (
        "stopped before this run saved a checkpoint: the same command goes on from what an earlier "
        "one saved, or begins anew (--save-interval-updates N saves more often)"
    )


def explain(error: BaseException) -> str | None:
    """Return the sentence for an error that is the user's to mend, None for any other."""
    message = clean(" ".join(str(error).split()))
    if isinstance(error, UserError):
        return message
    if isinstance(error, OSError) and error.filename is not None:
        # a checkpoint may have named it
        name = clean(" ".join(str(error.filename).split()))
        return f"{name[:LONGEST_NAME]}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return f"the disk is full or a size limit is reached ({error.strerror}): make room"
    kinds = {
        plugin.PACKAGE: (ValueError, ImportError, NotImplementedError, RuntimeError, OSError),
        "fairseq": (AssertionError, OSError),
        "fairseq_cli": (AssertionError, OSError),
    }.get(raised_in(error).partition(".")[0], ())
    # fairseq raises a bare Exception only with words for the user
    if message and (isinstance(error, kinds) or (kinds and type(error) is Exception)):
        return f"{message} (HYPTRANS_TRACEBACK=1 shows where this comes from)"
    return None


def raised_in(error: BaseException) -> str:
    """Return the name of the module whose line raised the error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__", "") if traceback is not None else ""
