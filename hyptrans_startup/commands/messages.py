"""Errors of the ``fairseq-*`` commands in one sentence, where fairseq shows a traceback.

Nothing here changes what a command does with good input. ``HYPTRANS_TRACEBACK=1`` brings the
tracebacks back.
"""

import linecache
import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hyptrans_startup import plugin
from hyptrans_startup.checkpoints import saving
from hyptrans_startup.checkpoints.schema import CHOSEN_BY_A_FILE
from hyptrans_startup.checkpoints.sentences import reason_of
from hyptrans_startup.errors import DISK_FULL, UserError, clean, clean_terminals
from hyptrans_startup.wrapping import Call

LONGEST_NAME = 300
"""Characters of a file's name that are shown."""
STOPPED = 130
"""The exit status after Ctrl-C, as a shell has it."""
WHERE = "HYPTRANS_TRACEBACK=1 shows where this comes from"
_BENEATH = {"torch", "numpy", *sys.stdlib_module_names}
"""Packages that raise errors for others."""
_USUAL_MODELS = "fairseq.models.transformer."
_USUAL_PARTS = {"adam", "inverse_sqrt", "polynomial_decay", "fixed"}
"""Optimizer and schedules of translations; errors out of them are not the choice's."""
CRASH = "crash.pt"
_NO_MEMORY = re.compile(r"out of memory|can't allocate memory", re.I)
_MISSING = re.compile(r"(?:Error merging override \w+\.|Missing mandatory value: )(\w+)")
"""What is said of an option that has no default."""


def one_sentence(run: Call, *args: Any, **kwargs: Any) -> Any:
    """A traceback of dozens of lines for a mistake in what was typed, in all eight commands.

    Nothing of a file acts on a terminal: a dictionary may have such words.
    """
    clean_terminals()
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
    if isinstance(error, OSError) and message:
        return message[:LONGEST_NAME]
    frames = frames_of(error)
    module, line = frames[-1] if frames else ("", "")
    if type(error).__module__.partition(".")[0] in ("hydra", "omegaconf"):
        missing = _MISSING.match(message)
        return f"--{missing[1].replace('_', '-')} is missing" if missing else message[:LONGEST_NAME]
    package = module.partition(".")[0]
    kinds: tuple[type[BaseException], ...] = ()
    if package == plugin.PACKAGE:
        kinds = (ValueError, ImportError, NotImplementedError, RuntimeError)
    elif package in ("fairseq", "fairseq_cli"):
        # its own words are for the user
        kinds = (Exception if line.startswith("raise ") else AssertionError,)
    if message and isinstance(error, kinds):
        return f"{message} ({WHERE})"
    # fairseq writes a last one where a training breaks
    saved = [path for path in saving.written if Path(path).name != CRASH]
    if isinstance(error, MemoryError) or _NO_MEMORY.search(message) or saved:
        # a choice that cannot be fails at once, not after an epoch or for want of memory
        return None
    chosen = choice_of([name for name, _ in frames])
    if chosen is None:
        return None
    return f"{chosen} cannot be used with what else is named ({reason_of(error)}; {WHERE})"


def frames_of(error: BaseException) -> list[tuple[str, str]]:
    """Return the modules that an error went through, and the lines in them, innermost last."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        line = linecache.getline(frame.f_code.co_filename, traceback.tb_lineno)
        frames.append((frame.f_globals.get("__name__", ""), line.strip()))
        traceback = traceback.tb_next
    return frames


def choice_of(modules: Sequence[str]) -> str | None:
    """Return the flag and the name of what an error comes from, where that is fairseq's own code.

    What translations usually are trained with is not meant.

    Args:
        modules: those that the error went through, innermost last.
    """
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    own = [name for name in modules if name.partition(".")[0] not in _BENEATH]
    if not own or not own[-1].startswith("fairseq."):
        return None
    known = {f"--{name.replace('_', '-')}": each["registry"] for name, each in REGISTRIES.items()}
    known |= {"--task": TASK_REGISTRY, "--arch": ARCH_MODEL_REGISTRY}
    usual = _USUAL_PARTS.union(*CHOSEN_BY_A_FILE.values())
    found: dict[bool, str] = {}
    for flag, name in pairwise(" ".join(sys.argv[1:]).replace("=", " ").split()):
        home = getattr(known.get(flag, {}).get(name), "__module__", "")
        if name in usual or not home.startswith("fairseq.") or home.startswith(_USUAL_MODELS):
            continue
        # what a task makes, and what works on a model, may fail where there is nothing of either
        if home in own or flag in ("--task", "--arch"):
            found.setdefault(home in own, f"{flag} {name}")
    return found.get(True, found.get(False))
