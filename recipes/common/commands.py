"""Run a recipe's commands: print them as typed, record them without local paths, log each one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import take_lock
from recipes.common.options import DATA_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
"""The repository's root, the working directory of all recipes."""
_OF_COMMAND = re.compile(r"^([\w.-]+: )?error: ")
_START = time.monotonic()


def say(text: str) -> None:
    """Print one line with the time since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _START), 60)
    print(f"[{minutes}:{seconds:02d}] {text}", flush=True)


def portable(command: Sequence[str], out: Path) -> str:
    """Return a command without the folders of this machine.

    ``out`` becomes OUT, the folder in HYPTRANS_DATA becomes that name, and the home folder ``~``;
    paths in the repository become relative to its root.
    """
    data = os.environ.get(DATA_VARIABLE)
    folders = {out: "OUT", ROOT: "", Path(data or ""): f"${DATA_VARIABLE}", Path.home(): "~"}
    return shlex.join(_portable(word, folders) for word in command)


def _portable(word: str, folders: Mapping[Path, str]) -> str:
    flag, joined, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    path = Path(value)
    for folder, name in folders.items():
        # "" and / contain every path
        if folder != Path(folder.anchor) and path.is_relative_to(folder):
            return f"{flag}{joined}{name / path.relative_to(folder)}"
    return word


def execute(
    command: Sequence[str],
    log: Path,
    *,
    threads: int = 0,
    progress: Callable[[str], str | None] = lambda line: None,
) -> None:
    """Run a command to its end and append its output to its log.

    Args:
        command: a program of this environment (``fairseq-train``) or ``python``, and arguments.
        log: log file; messages call the command by its name without the suffix.
        threads: CPU threads that the command may use, 0 for its own default.
        progress: turns a line of the output into a line to show, or None.

    Raises:
        UserError: the command failed, or another run is executing it.
    """
    name, *arguments = command
    # don't resolve links: the interpreter of a virtual environment is one
    program = sys.executable if name == "python" else str(Path(sys.executable).parent / name)
    limits = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    typed = " ".join([*(f"{k}={v}" for k, v in limits.items()), shlex.join([program, *arguments])])
    say(f"{log.stem}:\n$ {typed.replace(f'{Path.cwd()}{os.sep}', '')}")
    log.parent.mkdir(parents=True, exist_ok=True)
    # the command inherits the lock and may outlive this program
    lock = take_lock(log.with_suffix(".lock"), log)
    try:
        process = subprocess.Popen(
            [program, *arguments],
            env={**os.environ, "PYTHONUNBUFFERED": "1", **limits},
            pass_fds=[lock],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        with process, open(log, "a", encoding="utf-8", buffering=1) as file:
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                if shown := progress(line):
                    say(f"{log.stem}: {shown}")
    finally:
        os.close(lock)
    if process.returncode:
        raise UserError(f"{log.stem} failed: {last_line(log)} (all of its output: {log})")


def last_line(log: Path) -> str:
    """Return the last non-empty line of a log."""
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    return _OF_COMMAND.sub("", lines[-1].strip()) if lines else "it wrote nothing"
