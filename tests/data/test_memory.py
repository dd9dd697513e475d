"""Memory of learning byte pairs, which docs promise to stay below 4 GiB on any corpus."""

import random
import subprocess
import sys

import pytest

from hyptrans.data.learn import MOST_WORD_TYPES

SYLLABLES = [c + v + e for c in "bdfghklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s")]
LEARN = """
import resource, sys
from pathlib import Path
from hyptrans.data import learn
learn.learn("subword-nmt", [Path(sys.argv[1])], 200, Path(sys.argv[1] + ".codes"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_of(folder, types):
    """Peak resident set, in KiB, of a process that learns from so many word types."""
    rng, words = random.Random(types), set()
    while len(words) < types:
        words.add("".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))))
    text = folder / f"{types}.txt"
    text.write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
    command = [sys.executable, "-c", LEARN, str(text)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is Linux's")
def test_as_many_word_types_as_are_used_fit_into_four_gigabytes(tmp_path):
    few, many = 20_000, 80_000
    peaks = [peak_of(tmp_path, types) for types in (few, many)]
    by_type = (peaks[1] - peaks[0]) / (many - few)
    assert peaks[0] + by_type * (MOST_WORD_TYPES - few) < 4 * 2**20
