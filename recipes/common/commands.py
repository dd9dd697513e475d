"""Run a recipe's commands: print them as typed, record them without local paths, log each one."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import take_lock

ROOT = Path(__file__).resolve().parents[2]
"""The repository's root, the working directory of all recipes."""
DATA_VARIABLE = "HYPTRANS_DATA"
THREADS = os.environ.get("OMP_NUM_THREADS") or "1"
"""CPU threads of each command."""
# fairseq writes a million as 1e+06
NUMBER = r"(\d[\d.]*(?:e[+-]?\d+)?|inf|nan)"
UPDATE = re.compile(rf"\| train_inner \|.* ppl={NUMBER},.* ups=([\d.]+),.* num_updates=(\d+)")
VALID = re.compile(rf"\| valid \|.*\| ppl {NUMBER} .*\| num_updates (\d+)")
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
    data = os.environ.get(DATA_VARIABLE) or os.devnull
    folders = {out: "OUT", ROOT: "", Path(data): f"${DATA_VARIABLE}", Path.home(): "~"}

    def shortened(word: str) -> str:
        flag, joined, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
        path = Path(value)
        for folder, name in folders.items():
            # "/" contains every path
            if folder != Path(folder.anchor) and path.is_relative_to(folder):
                return f"{flag}{joined}{name / path.relative_to(folder)}"
        return word

    return shlex.join(map(shortened, command))


def execute(command: Sequence[str], log: Path) -> None:
    """Run a command to its end, append its output to its log, and show its perplexities.

    Args:
        command: a program of this environment (``fairseq-train``) or ``python``, and arguments.
        log: log file; messages call the command by its name without the suffix.

    Raises:
        UserError: the command failed, or another run is executing it.
    """
    name, *arguments = command
    # don't resolve links: the interpreter of a virtual environment is one
    program = sys.executable if name == "python" else str(Path(sys.executable).parent / name)
    typed = shlex.join([program, *arguments]).replace(f"{Path.cwd()}{os.sep}", "")
    say(f"{log.stem}:\n$ {typed}")
    log.parent.mkdir(parents=True, exist_ok=True)
    # the command inherits the lock and may outlive this program
    lock = take_lock(log.with_suffix(".lock"), log)
    try:
        process = subprocess.Popen(
            [program, *arguments],
            env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": THREADS},
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
                if found := UPDATE.search(line):
                    say(f"{log.stem}: update {found[3]}, training perplexity {found[1]}")
                elif found := VALID.search(line):
                    say(f"{log.stem}: update {found[2]}, valid perplexity {found[1]}")
    finally:
        os.close(lock)
    if process.returncode:
        message = log.read_text(encoding="utf-8").rstrip().rpartition("\n")[2].strip()
        message = _OF_COMMAND.sub("", message) or "it wrote nothing"
        raise UserError(f"{log.stem} failed: {message} (all of its output: {log})")
