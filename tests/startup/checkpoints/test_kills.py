"""Runs that are killed at random moments, again and again, end as if nobody had touched them.

``-s`` shows the table: kills, how many of them while a file was written, what was lost.
"""

import logging
import os
import random
import re
import signal
import sys
import time

import pytest
import torch

from hyptrans_startup.checkpoints import saving
from tests.probing.commands.runs import FAST, write_trees
from tests.probing.helpers.model import make_checkpoint, prepared_folder
from tests.startup.conftest import TINY

pytestmark = pytest.mark.long

TRAININGS, PREPARATIONS, PROBINGS = 30, 10, 10
UPDATES = 150
"""More than all kills let through."""
UNLEARNED = re.compile(r"\._float_tensor$|^encoder\.layers\.\d\.(in_proj|out_proj|fc1|fc2)_")
"""A number of fairseq's that is never set, and copies of weights that it makes at loading."""


def start(main, log):
    """Run a function in a fork, which spares the imports; its output goes to a file."""
    child = os.fork()
    if child == 0:
        with open(log, "a") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        # those of the tests are not the process's own
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, force=True)
        status = 1
        try:
            status = main() or 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    return child


def finish(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(child, ready, delay):
    """Kill a process some seconds after it is ready for it; false if it ended before."""
    while not ready():
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return finish(child) == -signal.SIGKILL


def files_of(folder):
    return {p for p in folder.rglob("*") if p.is_file()} if folder.exists() else set()


def report(what, kills, writing):
    print(f"{what}: {kills} kills, {writing} of them while a file was written, nothing lost")  # noqa: T201


def training(data, save):
    """A training whose last checkpoint is copied from another one, every two updates."""
    words = ["fairseq-train", str(data), *TINY, f"--save-dir={save}", f"--max-update={UPDATES}"]
    words += ["--save-interval-updates=2", "--keep-interval-updates=2", "--no-epoch-checkpoints"]
    words += ["--log-interval=1", "--num-workers=0", "--dropout=0.1"]

    def main():
        from fairseq_cli import train

        sys.argv = words
        train.cli_main()

    return main


def updates_of(checkpoint):
    return torch.load(checkpoint)["optimizer_history"][-1]["num_updates"]


def test_training_loses_nothing(data, tmp_path):
    from fairseq_cli import train  # noqa: F401 - once, for all forks

    draw = random.Random(0)
    whole, save = tmp_path / "whole", tmp_path / "killed"
    assert finish(start(training(data, whole), tmp_path / "whole.log")) == 0
    last, log = save / "checkpoint_last.pt", tmp_path / "killed.log"
    kills = writing = reached = 0
    while kills < TRAININGS:
        log.unlink(missing_ok=True)
        # what the last kill cut would be taken for a write that is under way
        for cut in save.glob("*.partial"):
            cut.unlink()
        at_write, updates = draw.random() < 0.5, draw.randint(1, 4)

        def ready(at_write=at_write, updates=updates):
            if at_write:
                return any(save.glob("*.partial"))
            return log.exists() and log.read_text().count("train_inner") >= updates

        child = start(training(data, save), log)
        assert killed(child, ready, draw.uniform(0, 0.01)), log.read_text()[-3000:]
        kills += 1
        writing += any(save.glob("*.partial"))
        assert not [path for path in save.glob("*.pt") if saving.is_cut(path)]
        if last.exists():
            assert updates_of(last) >= reached
            reached = updates_of(last)
    assert finish(start(training(data, save), log)) == 0
    expected, found = (torch.load(folder / last.name) for folder in (whole, save))
    assert updates_of(last) == UPDATES
    for state in (expected, found):
        for name in filter(UNLEARNED.search, list(state["model"])):
            del state["model"][name]
    for part in ("model", "last_optimizer_state"):
        torch.testing.assert_close(found[part], expected[part], rtol=0, atol=0)
    report("training", kills, writing)


def test_preparation_loses_nothing(tmp_path):
    from hyptrans.data.commands.cli import PROGRAM

    draw = random.Random(0)
    words = ["--raw-text", "--vocab-size", "40", "--workers", "1"]
    for name, count in {"train": 3000, "valid": 50, "test": 50}.items():
        pair = [tmp_path / f"{name}.{side}" for side in ("en", "de")]
        for path in pair:
            lines = (draw.choices(["dog", "cat", "house", "tree"], k=6) for _ in range(count))
            path.write_text("".join(" ".join(line) + f" {draw.random():.3f}\n" for line in lines))
        words += [f"--{name}", *map(str, pair)]

    def preparation(out):
        return lambda: PROGRAM.run(["text", *words, "--out", str(out)])

    whole, out = tmp_path / "whole", tmp_path / "killed"
    begun = time.monotonic()
    assert finish(start(preparation(whole), tmp_path / "log")) == 0
    seconds = time.monotonic() - begun
    kills = writing = 0
    while kills < PREPARATIONS:
        if killed(start(preparation(out), tmp_path / "log"), lambda: True, seconds * draw.random()):
            kills += 1
            writing += any("partial" in path.name for path in files_of(out))
        else:  # it had ended: once more from the beginning
            os.rename(out, tmp_path / f"ended{draw.random()}")
    assert finish(start(preparation(out), tmp_path / "log")) == 0
    for folder in ("data-bin", "raw"):
        expected = {p.relative_to(whole): p.read_bytes() for p in files_of(whole / folder)}
        assert {p.relative_to(out): p.read_bytes() for p in files_of(out / folder)} == expected
        assert expected
    report("preparation", kills, writing)


def test_probing_loses_nothing(tmp_path):
    from probing.commands.cli import main

    draw = random.Random(0)
    data = prepared_folder(tmp_path / "data")
    checkpoint = tmp_path / "checkpoint_best.pt"
    make_checkpoint(checkpoint, data, "hybonet_tiny")
    words = ["run", "--data", str(data), "--checkpoint", str(checkpoint), *FAST]
    for i, part in enumerate(("train", "dev", "test")):
        words += [f"--{part}", str(write_trees(tmp_path / f"{part}.conllu", 20, seed=i))]

    def probing(out):
        return lambda: main([*words, "--out", str(out)])

    whole, out = tmp_path / "whole", tmp_path / "killed"
    assert finish(start(probing(whole), tmp_path / "log")) == 0
    count = len(files_of(whole))
    kills = writing = after_files = 0
    while kills < PROBINGS:
        # every file may be the last before a kill
        there = draw.randrange(count)
        child = start(probing(out), tmp_path / "log")
        if killed(child, lambda there=there: len(files_of(out)) >= there, draw.uniform(0, 0.05)):
            kills += 1
            writing += any("partial" in path.name for path in files_of(out))
            after_files += bool(files_of(out))
        if draw.random() < 0.3 or (out / "results.json").exists():
            os.rename(out, tmp_path / f"left{draw.random()}")
    assert after_files >= PROBINGS // 2
    assert finish(start(probing(out), tmp_path / "log")) == 0
    tables = [(folder / "results.md").read_text() for folder in (whole, out)]
    assert tables[0] == tables[1]
    report("probing", kills, writing)
