"""3,000 pairs of one's own, from text files to curves, by the commands that a user types."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hyptrans.toy import treebank
from tests import interrupts

pytestmark = pytest.mark.slow

UPDATES = 24
# what a user would change of the line that is printed, so that this is over soon
SOON = f"--max-update {UPDATES} --save-interval-updates 6 --keep-interval-updates 1 --cpu"
SOON += " --max-tokens 1500 --log-format simple --log-interval 2"


def started(line, cwd, **more):
    program, *words = shlex.split(line)
    command = [str(Path(sys.executable).with_name(program)), *words]
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=cwd, env=variables, text=True, preexec_fn=interrupts.heed, **more
    )


def test_a_text_of_ones_own_becomes_a_model(tmp_path):
    treebank.write(tmp_path / "text", treebank.Settings(train=3000, valid=60, test=40, seed=3))

    def run(line, stdin=""):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = started(line, tmp_path, **pipes)
        out, err = process.communicate(stdin)
        assert process.returncode == 0, out[-2000:] + err[-2000:]
        return out

    sets = " ".join(f"--{name} text/{name}.en text/{name}.qtv" for name in treebank.SPLITS)
    printed = run(f"hyptrans prepare text {sets} --raw-text --out data").splitlines()
    assert "train: 3,000 pairs" in printed
    (subwords,) = re.findall(r"subwords: ([\d,]+) pieces.*this text supports no 8,000", *[
        line for line in printed if line.startswith("subwords")
    ])  # fmt: skip
    assert 100 < int(subwords.replace(",", "")) < 8000
    assert len(printed) < 12

    training = printed[-1]
    assert training.startswith("fairseq-train data/data-bin --user-dir hyptrans --arch ")
    assert training.endswith(" --save-dir checkpoints/data")
    # Ctrl-C after the first checkpoint, then the same line again
    with open(tmp_path / "train.log", "w+") as log:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = started(f"{training} {SOON}", tmp_path, **pipes)
        for line in process.stdout:
            log.write(line)
            if "Saved checkpoint" in line:
                process.send_signal(signal.SIGINT)
                break
        rest, _ = process.communicate()
        assert process.returncode != 0
        assert f"num_updates={UPDATES}" not in rest
        resumed = run(f"{training} {SOON}")
        log.write(rest + resumed)
    (updates,) = map(int, re.findall(r"Loaded checkpoint .* @ (\d+) updates\)", resumed))
    assert 6 <= updates < UPDATES
    assert f"num_updates={UPDATES}" in resumed

    source = (tmp_path / "text" / "test.en").read_text()
    translated = run("hyptrans translate checkpoints/data/checkpoint_last.pt --beam 2", source)
    assert translated.count("\n") == 40
    run("hyptrans export checkpoints/data/checkpoint_last.pt --out model")
    assert run("hyptrans translate model --beam 2", source) == translated
    run("hyptrans plot train.log --out curves.svg")
    picture = (tmp_path / "curves.svg").read_text()
    assert "training loss" in picture
    assert "validation loss" in picture
