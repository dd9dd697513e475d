"""The table of memory and time against the length."""

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "recipes" / "benchmark" / "scaling.py"


def test_script_prints_a_row_for_every_length_and_position():
    sizes = ["--lengths", "32", "--positions", "5"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *sizes],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = re.findall(r"^ +(\d+) +[\d.]+", done.stdout, flags=re.M)
    assert rows == ["32", "5"] * 2  # linear and softmax


def test_script_says_which_measurement_failed():
    sizes = ["--lengths", "0", "--positions", "2"]
    done = subprocess.run([sys.executable, SCRIPT, *sizes], capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.rstrip().endswith("measuring training at 0 failed with exit code 1")
