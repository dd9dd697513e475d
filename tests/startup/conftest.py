"""A tiny parallel text, its data folder and a checkpoint, made once by the commands themselves."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks

# equal for training and for going on with it
TINY = ["--arch=transformer_tiny", "--optimizer=adam", "--lr=1e-3", "--max-tokens=200"]
TINY += ["--no-progress-bar", "--cpu"]


def environment(**variables):
    """The variables of a program: of this process, but those that change what the hook does."""
    unset = ("HYPTRANS", "GOMP_SPINCOUNT")
    own = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    return own | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""} | variables


@pytest.fixture(scope="session")
def run():
    """Run a program of this environment in a folder; returns the finished process."""

    def run(*command, cwd, check=True, stdin=None, **variables):
        program = Path(sys.executable).parent / command[0]
        done = subprocess.run(
            [program, *map(str, command[1:])],
            cwd=cwd,
            env=environment(**variables),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done

    return run


@pytest.fixture(scope="session")
def fork():
    """Run a program like `run` but seconds faster, where its start is not under test."""

    def fork(*command, cwd, check=True, stdin=None):
        done = forks.run(*command, cwd=cwd, variables=environment(), stdin=stdin)
        if check:
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done

    return fork


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """A folder with ``train``, ``valid`` and ``test``, in lower case and reversed in upper case."""
    folder = tmp_path_factory.mktemp("work")
    draw = random.Random(0)
    for name, count in {"train": 60, "valid": 10, "test": 12}.items():
        # lengths differ, so that batches are padded
        lines = [draw.choices("abcdefgh", k=draw.randint(1, 6)) for _ in range(count)]
        source = "".join(" ".join(line) + "\n" for line in lines)
        target = "".join(" ".join(reversed(line)).upper() + "\n" for line in lines)
        (folder / f"{name}.en").write_text(source)
        (folder / f"{name}.de").write_text(target)
    return folder


@pytest.fixture(scope="session")
def data(work, fork):
    """The data folder that fairseq-preprocess writes."""
    sets = [f"--{name}pref={name}" for name in ("train", "valid", "test")]
    fork("fairseq-preprocess", "-s=en", "-t=de", *sets, "--destdir=bin", cwd=work)
    return work / "bin"


@pytest.fixture(scope="session")
def checkpoint(work, data, fork):
    """The checkpoint of one epoch, with numpy numbers in it from the BLEU scores."""
    bleu = ["--eval-bleu", '--eval-bleu-args={"beam": 1}', "--best-checkpoint-metric=bleu"]
    fork("fairseq-train", data, *TINY, *bleu, "--max-epoch=1", "--save-dir=ck", cwd=work)
    return work / "ck" / "checkpoint_last.pt"
