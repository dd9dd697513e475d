"""A tiny parallel text, its data folder and a checkpoint, made once by the commands themselves."""

import os
import random

import pytest

from tests import forks, programs
from tests.programs import SCRIPTS

# equal for training and for going on with it
TINY = ["--arch=transformer_tiny", "--optimizer=adam", "--lr=1e-3", "--max-tokens=200"]
TINY += ["--no-progress-bar", "--cpu"]


def sizes(**values):
    """The options that give both sides of a model such sizes."""
    sides = ("encoder", "decoder")
    return [f"--{side}-{k.replace('_', '-')}={v}" for side in sides for k, v in values.items()]


def environment(**variables):
    """The variables of a program: of this process, but those that change what the hook does."""
    unset = ("HYPTRANS", "GOMP_SPINCOUNT")
    own = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    return own | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""} | variables


@pytest.fixture(scope="session")
def run():
    """Run a program of this environment in a folder; returns the finished process."""

    def run(name, *words, cwd, check=True, stdin=None, **variables):
        how = {"input": stdin, "timeout": 1200, "check": check}
        return programs.run(SCRIPTS / name, *words, cwd=cwd, env=environment(**variables), **how)

    return run


@pytest.fixture(scope="session")
def fork():
    """Run a program like `run` but seconds faster, where its start is not under test."""

    def fork(*command, cwd, check=True, stdin=None):
        return forks.run(*command, cwd=cwd, variables=environment(), stdin=stdin, check=check)

    return fork


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="session")
def data(work):
    """Letters, and the same reversed as capitals."""
    draw, sets = random.Random(0), {}
    for name, count in {"train": 60, "valid": 10, "test": 12}.items():
        # lengths differ, so that batches are padded
        lines = [draw.choices("abcdefgh", k=draw.randint(1, 6)) for _ in range(count)]
        sets[name] = [(line, [letter.upper() for letter in line[::-1]]) for line in lines]
    return forks.preprocess(work, sets)


@pytest.fixture(scope="session")
def checkpoint(work, data, fork):
    """The checkpoint of one epoch, with numpy numbers in it from the BLEU scores."""
    bleu = ["--eval-bleu", '--eval-bleu-args={"beam": 1}', "--best-checkpoint-metric=bleu"]
    fork("fairseq-train", data, *TINY, *bleu, "--max-epoch=1", "--save-dir=ck", cwd=work)
    return work / "ck" / "checkpoint_last.pt"
