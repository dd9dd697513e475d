"""Runs the scripts of many fairseq commands with one import of fairseq, which takes seconds.

Reads a list of commands as JSON and prints a list of [exit status, stdout, stderr]. Each command
runs in a fork of this process, as the script that pip installed.
"""

import importlib
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path


def start(command, out, err):
    """Start a command in a fork; returns its process id."""
    child = os.fork()
    if child == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.argv = [str(Path(sys.executable).parent / command[0]), *command[1:]]
        # ends the process, and an error goes to the interpreter, as from a command line
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    return child


def finish(child, out, err):
    """Return [exit status, stdout, stderr] of a command that was started."""
    _, status = os.waitpid(child, 0)
    for file in (out, err):
        file.seek(0)
    return [os.waitstatus_to_exitcode(status), out.read(), err.read()]


def main():
    for command in ("generate", "hydra_train", "interactive", "preprocess", "score", "train"):
        importlib.import_module(f"fairseq_cli.{command}")
    typed = json.load(sys.stdin)
    outcomes = []
    for i in range(0, len(typed), 2):  # two at a time
        started = []
        for command in typed[i : i + 2]:
            files = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115
            started.append((start(command, *files), *files))
        outcomes += [finish(*one) for one in started]
    print(json.dumps(outcomes))  # noqa: T201


if __name__ == "__main__":
    main()
