"""Threads of a training leave the cores to other programs while they wait."""

import os
import subprocess
import sys

import pytest

SHOWN = "import os, fairseq; print(os.environ.get('GOMP_SPINCOUNT'))"


@pytest.mark.parametrize(
    ("before", "said", "seen"),
    [
        ("", {}, "1000"),
        ("", {"GOMP_SPINCOUNT": "5"}, "5"),
        ("", {"OMP_WAIT_POLICY": "active"}, "None"),
        # torch has read its variables already
        ("import torch; ", {}, "None"),
    ],
)
def test_threads_spin_briefly_unless_the_user_says_how(before, said, seen, tmp_path, run):
    done = run("python", "-c", before + SHOWN, cwd=tmp_path, **said)
    assert done.stdout.split() == [seen]


WORK = """
import fairseq, time, torch
x = torch.rand(200_000)
for rounds in (50, 1000):
    begun = time.perf_counter()
    for _ in range(rounds):
        x.exp()
print(time.perf_counter() - begun)
"""


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_thread_a_core_beside_busy_programs_is_not_far_slower_than_one_thread(tmp_path, run):
    cores = len(os.sched_getaffinity(0))

    def seconds(threads):
        return float(run("python", "-c", WORK, cwd=tmp_path, OMP_NUM_THREADS=str(threads)).stdout)

    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        assert seconds(cores) < 2.5 * seconds(1)
    finally:
        for program in busy:
            program.kill()
            program.wait()
