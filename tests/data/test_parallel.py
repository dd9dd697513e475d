"""Lines on several processes: what Ctrl-C leaves on the screen."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests import interrupts

ROOT = Path(__file__).parents[3]
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
        preexec_fn=interrupts.heed,
    )
    assert process.stdout.readline() == "0\n"
    # a terminal sends it to all processes of the command
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "\nstopped; the same command continues where it stopped\n"
