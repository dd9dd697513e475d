"""The real ``fairseq-preprocess`` as a process of its own, in a folder that appears when whole."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import remove
from hyptrans_startup.files import sync_folder

_COUNTS = re.compile(
    r"\[(?P<lang>[^\]]+)\] (?P<file>.+): (?P<lines>\d+) sents, (?P<tokens>\d+) tokens, "
    r"(?P<share>[\d.]+(e[+-]\d+)?)% replaced"
)
_TYPES = re.compile(r"\[(?P<lang>[^\]]+)\] Dictionary: (?P<types>\d+) types")
_PR_SET_PDEATHSIG = 1


def find_command(name: str) -> str:
    """Return the path of a console script of this environment.

    Raises:
        UserError: there is none.
    """
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / name).is_file():
            return str(folder / name)
    if found := shutil.which(name):
        return found
    raise UserError(
        f"the command {name} is not there; install it with: pip install 'hyptrans[fairseq]'"
    )


def binarize(
    *,
    prefixes: dict[str, Path],
    languages: tuple[str, str],
    folder: Path,
    scratch: Path,
    joined: bool,
    dictionaries: Sequence[Path],
    workers: int,
) -> dict[str, Any]:
    """Binarize encoded text into ``folder`` and return what fairseq counted.

    Args:
        prefixes: file prefix of each set (``train``, ``valid``, ``test``, ``test1`` ...).
        languages: source and target.
        folder: final place, replaced by a rename.
        scratch: where the folder is built.
        joined: one dictionary for both sides.
        dictionaries: ready ones for source and target, one when joined; fairseq builds those that
            are missing.
        workers: processes.

    Raises:
        UserError: fairseq-preprocess failed or miscounted.
    """
    remove(scratch)
    scratch.mkdir(parents=True)
    source, target = languages
    command = [find_command("fairseq-preprocess"), "--source-lang", source, "--target-lang", target]
    command += ["--trainpref", str(prefixes["train"]), "--validpref", str(prefixes["valid"])]
    if tests := [str(prefix) for name, prefix in prefixes.items() if name.startswith("test")]:
        command += ["--testpref", ",".join(tests)]
    command += ["--destdir", str(scratch), "--workers", str(workers)]
    command += ["--joined-dictionary"] if joined else []
    for option, path in zip(("--srcdict", "--tgtdict"), dictionaries, strict=False):
        command += [option, str(path)]
    log = _run(command)
    # it holds paths and the number of workers, so it is not the same from run to run
    (scratch / "preprocess.log").unlink(missing_ok=True)
    counts = read_counts(log, prefixes)
    for path in scratch.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    remove(folder)
    os.rename(scratch, folder)
    sync_folder(folder.parent)
    return counts


def _run(command: list[str]) -> str:
    process = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        # one thread for each of its processes: torch's default is one per core in every process
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )
    if process.returncode == 0:
        return process.stdout
    lines = [line for line in process.stdout.splitlines() if line.strip()] or ["no output"]
    if "No space left on device" in process.stdout:
        raise UserError("fairseq-preprocess: the disk is full; free some space and run again")
    raise UserError(
        f"fairseq-preprocess ended with status {process.returncode}: {lines[-1].strip()}"
    )


def _end_with_parent() -> None:
    # otherwise it goes on writing after a kill -9 of this process
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def read_counts(log: str, prefixes: dict[str, Path]) -> dict[str, Any]:
    """What fairseq counted, by what its log says of each dictionary and file."""
    names = {str(prefix): name for name, prefix in prefixes.items()}
    counts: dict[str, Any] = {
        f"dictionary {match['lang']}": int(match["types"]) for match in _TYPES.finditer(log)
    }
    for match in _COUNTS.finditer(log):
        name = names[match["file"].removesuffix("." + match["lang"])]
        counts[f"{name}.{match['lang']}"] = {
            "lines": int(match["lines"]),
            "tokens": int(match["tokens"]),
            "percent unknown": float(match["share"]),
        }
    return counts
