"""Ctrl-C, workers that die, and input that is not read ahead."""

import os
import signal
import subprocess
import sys
from functools import partial

import pytest

from hyptrans.data import parallel
from hyptrans.support.errors import UserError
from tests.programs import ROOT, heed


def shout():
    return lambda line: line.upper() + str(len(line))


def suicide(parent):
    def function(line):
        if line == "now" and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return line

    return function


def test_any_number_of_workers_keeps_the_order_of_lines():
    lines = [f"line {number}" for number in range(9500)]
    expected = [line.upper() + str(len(line)) for line in lines]
    assert list(parallel.map_lines(shout, lines, workers=1)) == expected
    assert list(parallel.map_lines(shout, iter(lines), workers=3)) == expected


def test_workers_read_ahead_only_within_a_bound():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "line"

    stream = parallel.map_lines(shout, endless(), workers=2)
    assert next(stream) == "LINE4"
    assert taken < 20_000
    stream.close()


def test_a_killed_worker_gives_a_one_sentence_error():
    lines = ["line"] * 6000 + ["now"] + ["line"] * 6000
    with pytest.raises(UserError, match="a worker process was killed"):
        list(parallel.map_lines(partial(suicide, os.getpid()), lines, workers=2))


SCRIPT = """
import sys, time
from hyptrans.data.parallel import map_lines
from hyptrans.support.errors import run_command


def build():
    return slow


def slow(line):
    time.sleep(0.001)
    return line


def main():
    for line in map_lines(build, (str(i) for i in range(100_000)), workers=2):
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(run_command(main))
"""


def test_ctrl_c_shows_one_sentence_and_no_traceback_of_a_worker(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        preexec_fn=heed,
    )
    assert process.stdout.readline() == "0\n"
    # a terminal sends it to all processes of the command
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "\nstopped; the same command continues where it stopped\n"
