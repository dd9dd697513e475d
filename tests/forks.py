"""Programs of this environment as a user starts them, but for the seconds that imports take.

Each runs in a fork of one process, which has imported fairseq and the libraries beneath.
"""

import logging
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import hyptrans_startup
from tests.programs import ROOT, SCRIPTS

LIMIT = 1200
"""Seconds a program may take."""

_CONTEXT = multiprocessing.get_context("forkserver")
# neither a command, whose import sets up logging, nor hyptrans.models, which --user-dir imports;
# every optimizer of torch imports its compiler, which takes longer than a tiny training
_CONTEXT.set_forkserver_preload(
    [
        *(f"fairseq.{name}" for name in ("checkpoint_utils", "options", "trainer")),
        *("geoopt", "numba", "torch._dynamo", "sacrebleu"),
    ]
)


def run(
    *command: str | Path,
    cwd: Path,
    variables: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a script that pip installed; ``variables`` are its environment."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"} if variables is None else variables
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_text(stdin or "", encoding="utf-8")
        process = start(*command, cwd=cwd, variables=variables, files=files)
        process.join(LIMIT)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired([*map(str, command)], LIMIT)
        output, errors = (file.read_text(encoding="utf-8") for file in files[1:])
    if check:
        assert process.exitcode == 0, output[-2000:] + errors[-4000:]
    return subprocess.CompletedProcess([*map(str, command)], process.exitcode, output, errors)


def preprocess(folder: Path, sets: Mapping[str, Iterable[tuple[list[str], list[str]]]]) -> Path:
    """Write pairs of lines of words; returns the data folder that fairseq-preprocess makes."""
    for name, pairs in sets.items():
        for side, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            text = "".join(" ".join(line) + "\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text)
    prefixes = [f"--{name}pref={folder / name}" for name in sets]
    run("fairseq-preprocess", "-s=en", "-t=de", *prefixes, f"--destdir={folder}/bin", cwd=folder)
    return folder / "bin"


def start(
    *command: str | Path, cwd: Path, variables: Mapping[str, str], files: Iterable[Path]
) -> ForkServerProcess:
    """Start such a script; ``files`` are its input, output and errors."""
    words = [str(SCRIPTS / command[0]), *map(str, command[1:])]
    process = _CONTEXT.Process(target=_become, args=(words, cwd, dict(variables), files))
    process.start()
    return process


def _become(
    command: list[str], cwd: Path, variables: dict[str, str], files: Iterable[Path]
) -> None:
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    os.environ.clear()
    os.environ.update(variables)
    if Path(command[0]).name.startswith("fairseq-"):
        hyptrans_startup.install()
    os.chdir(cwd)
    # as where a script starts: its folder, and the project by its installation alone
    found = [place for place in sys.path if place not in ("", str(ROOT))]
    sys.path[:] = [str(Path(command[0]).parent), *found]
    # a command sets up logging before anything else, and imports above have logged
    logging.getLogger().handlers.clear()
    sys.argv = command
    try:
        runpy.run_path(command[0], run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
