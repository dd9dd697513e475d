"""Full disks, workers that die, and memory that stays bounded."""

import os
import signal
import subprocess
import sys
import textwrap
from functools import partial

import pytest

from hyptrans.data import parallel
from hyptrans.support.errors import UserError
from tests.data.conftest import REPOSITORY, tree


def test_full_disk_is_one_sentence_and_leaves_no_half_file(tmp_path, corpus):
    words = [*map(str, corpus(train=3000)), "--raw-text", "--out", str(tmp_path / "out")]
    code = (
        "import resource, runpy, sys; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
        "runpy.run_module('hyptrans', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "prepare", "text", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "the disk is full or a size limit is reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert all(len(content) < 50_000 for content in tree(tmp_path / "out").values())
    assert not list(tmp_path.rglob("*.partial"))


def shout():
    return lambda line: line.upper() + str(len(line))


def suicide(parent):
    def function(line):
        if line == "now" and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return line

    return function


def test_lines_come_in_order_from_any_number_of_workers():
    lines = [f"line {number}" for number in range(9500)]
    expected = [line.upper() + str(len(line)) for line in lines]
    assert list(parallel.map_lines(shout, lines, workers=1)) == expected
    assert list(parallel.map_lines(shout, iter(lines), workers=3)) == expected


def test_input_is_not_read_ahead_without_bound():
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


def test_worker_that_dies_is_one_sentence():
    lines = ["line"] * 6000 + ["now"] + ["line"] * 6000
    with pytest.raises(UserError, match="a worker process was killed"):
        list(parallel.map_lines(partial(suicide, os.getpid()), lines, workers=2))


@pytest.mark.slow
def test_memory_of_the_text_steps_does_not_grow_with_the_text(tmp_path):
    code = textwrap.dedent(
        """
        import resource, sys
        from hyptrans.data.clean import CleanRule
        from hyptrans.data.corpus import Scrubber, write_pairs
        from collections import Counter
        from pathlib import Path

        line = "some words of a sentence that is not too short " * 3
        pairs = ((line + str(i), line) for i in range(int(sys.argv[1])))
        scrub = Scrubber(raw_text=True)
        kept = CleanRule(ratio=1.5).keep(((scrub(a), scrub(b)) for a, b in pairs), Counter())
        write_pairs(kept, Path(sys.argv[2], "a"), Path(sys.argv[2], "b"))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        """
    )
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", code, str(count), str(tmp_path)],
                cwd=REPOSITORY,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for count in (10_000, 400_000)
    ]
    # KiB: forty times the text, less than 4 MiB more
    assert peaks[1] - peaks[0] < 4096
