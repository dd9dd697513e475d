"""Memory and time of the data preparation on text whose vocabulary grows as real text's does.

Generates pairs of distinct lines, prepares them with ``prepare_text`` (Moses tokenization, joint
BPE), and prints the peak memory and the time of every step. Then learns BPE on parts of the text,
fits the peak against the number of word types, and says what 4.5 million pairs would take.

Memory is the proportional set size (shared pages divided among their users) of this process and all
its children, read from ``/proc`` five times a second: Linux only.
"""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import threading
import time
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any
from unittest import mock

# a benchmark is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.dataprep import journal
from hyptrans.dataprep.commands import text
from hyptrans.dataprep.steps import subwords
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.lines import read_lines, write_lines
from recipes.common import options

# running words and distinct words in the first 375, 750, 1,500 and 3,003 lines of newstest2014,
# tokenized: what the generated text is fitted to
GROWTH = {
    "en": ((8925, 2400), (17650, 4084), (34485, 6520), (68932, 10230)),
    "de": ((7781, 2657), (15489, 4737), (31129, 8104), (64496, 13813)),
}
WORDS_PER_LINE = {"en": 23, "de": 21}
WMT14_PAIRS = 4_500_000
MERGES = 40_000
PARTS = (16, 8, 4)
"""Learning is measured on one pair in so many too."""
FOLDER = "dataprep_memory"
_SYLLABLES = [c + v + e for c in "bdfghklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s")]


def tail(rank: float, a: float, q: float) -> float:
    """Return the probability of a word of at least this rank: a Zipf law shifted by ``q``."""
    return (1 + rank / q) ** (1 - a)


def expected_types(words: float, a: float, q: float) -> float:
    """Return how many distinct words are expected among ``words`` running ones."""
    total, rank, step = 0.0, 0, 1
    while words * (tail(rank, a, q) - tail(rank + step, a, q)) / step > 1e-9:
        share = (tail(rank, a, q) - tail(rank + step, a, q)) / step
        total += step * -math.expm1(-words * share)
        rank += step
        step = max(1, rank // 100)
    return total


def fit_growth(points: tuple[tuple[int, int], ...]) -> tuple[float, float]:
    """Return the exponent and shift whose expected numbers of types are nearest to ``points``."""

    def error(a: float, q: float) -> float:
        return sum(math.log(expected_types(n, a, q) / types) ** 2 for n, types in points)

    grid = [
        (a / 100, q)
        for a in range(125, 180, 3)
        for q in (3, 5, 7, 10, 20, 40, 60, 90, 130, 200, 300)
    ]
    return min(grid, key=lambda pair: error(*pair))


def word(rank: int) -> str:
    """Return the pseudo-word of a rank: syllables, more of them for rarer words."""
    syllables = []
    while True:
        syllables.append(_SYLLABLES[rank % len(_SYLLABLES)])
        rank //= len(_SYLLABLES)
        if rank == 0:
            return "".join(syllables)
        rank -= 1


def sentences(lang: str, seed: int) -> Iterator[str]:
    """Yield distinct lines for ever."""
    a, q = fit_growth(GROWTH[lang])
    rng = random.Random(f"{lang}-{seed}")
    # the frequent ranks by table, the others by the inverse of the tail
    head = list(accumulate(tail(r, a, q) - tail(r + 1, a, q) for r in range(50_000)))
    names = [word(rank) for rank in range(len(head))]
    seen: set[int] = set()
    while True:
        chosen = []
        for _ in range(rng.randint(WORDS_PER_LINE[lang] - 12, WORDS_PER_LINE[lang] + 12)):
            u = rng.random()
            index = bisect(head, u)
            if index < len(head):
                chosen.append(names[index])
            else:
                chosen.append(word(int(q * ((1 - u) ** (1 / (1 - a)) - 1))))
        line = " ".join(chosen) + " ."
        if hash(line) not in seen:
            seen.add(hash(line))
            yield line


def proportional_memory(pid: int) -> int:
    """Return the proportional set size of a process and its descendants in KiB."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, ProcessLookupError):
        return 0
    own = int(rollup.split("\nPss:")[1].split()[0])
    return own + sum(proportional_memory(int(child)) for child in children)


class Meter:
    """Samples memory in the background and keeps the peak of each named stretch."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.name = "start"
        self.peaks: dict[str, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def sample(self) -> None:
        """Look once; a short stretch may lie between two looks of the background."""
        name, found = self.name, proportional_memory(self.pid)
        with self._lock:
            self.peaks[name] = max(self.peaks.get(name, 0), found)

    def _sample(self) -> None:
        self.sample()
        while not self._stop.wait(0.2):
            self.sample()

    def stop(self) -> dict[str, int]:
        """End sampling and return the peaks in KiB by name."""
        self._stop.set()
        self._thread.join()
        return self.peaks


def measure_steps(folder: Path, workers: int) -> tuple[int, float]:
    """Prepare the generated text; print peak memory and time of every step.

    Returns the number of word types and the peak of learning in MiB.
    """
    meter = Meter(pid=int(Path("/proc/self").resolve().name))
    run_step = journal.Journal.once
    seconds: dict[str, float] = {}

    def step(self: journal.Journal, name: str, *args: Any, **named: Any) -> Mapping[str, Any]:
        meter.name = name
        start = time.perf_counter()
        try:
            return run_step(self, name, *args, **named)
        finally:
            seconds[name] = time.perf_counter() - start
            meter.sample()

    names = [f"--{name}" for name in ("train", "valid", "test")]
    sets = [word for name in names for word in (name, *_files(folder, name[2:]))]
    words = ["--out", str(folder / "prepared"), "--vocab-size", str(MERGES)]
    words += ["--workers", str(workers), "--keep-intermediate", "--joined-dictionary"]
    with mock.patch.object(journal.Journal, "once", step):
        text.main([*sets, *words])
    peaks = meter.stop()
    sys.stdout.write(f"{'step':<24}{'peak MiB':>10}{'seconds':>10}\n")
    for name, passed in seconds.items():
        sys.stdout.write(f"{name:<24}{peaks[name] / 1024:>10.0f}{passed:>10.1f}\n")
    sys.stdout.flush()
    content = json.loads((folder / "prepared" / "manifest.json").read_text(encoding="utf-8"))
    learned = next(step for step in content["steps"] if step["name"] == "learn subwords")
    return learned["word types"], peaks["learn subwords"] / 1024


def _files(folder: Path, name: str) -> list[str]:
    return [str(folder / f"{name}.{lang}") for lang in GROWTH]


def learn_part(folder: Path, part: int) -> None:
    """Learn BPE on the first lines of both sides; prints types as JSON (run as a process)."""
    clean = folder / "prepared" / "intermediate" / "clean"
    heads = []
    for lang in GROWTH:
        heads.append(folder / f"head.{part}.{lang}")
        write_lines(islice(read_lines(clean / f"train.{lang}"), part), heads[-1])
    counts = subwords.learn("subword-nmt", heads, MERGES, folder / f"codes.{part}")
    sys.stdout.write(json.dumps(counts) + "\n")


def measure_part(folder: Path, part: int) -> tuple[int, float]:
    """Learn on a part of the text in a process of its own; returns types and peak in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, __file__, "--out", str(folder.parent), "--learn-part", str(part)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    meter = Meter(process.pid)
    output, errors = process.communicate()
    if process.returncode:
        meter.stop()
        said = (errors.strip().splitlines() or ["nothing"])[-1]
        raise UserError(
            f"learning on {part} pairs ended with status {process.returncode} and said: {said}"
        )
    peak = max(meter.stop().values()) / 1024
    types = json.loads(output)["word types"]
    passed = time.perf_counter() - start
    sys.stdout.write(
        f"learning on {part} pairs: {types} word types, {peak:.0f} MiB, {passed:.0f} s\n"
    )
    sys.stdout.flush()
    return types, peak


def extrapolate(rows: Sequence[tuple[int, float]]) -> None:
    """Fit a line through (types, MiB) and print where it ends for 4.5 million pairs."""
    mean_x = sum(x for x, _ in rows) / len(rows)
    mean_y = sum(y for _, y in rows) / len(rows)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in rows)
    slope /= sum((x - mean_x) ** 2 for x, _ in rows)
    base = mean_y - slope * mean_x
    sys.stdout.write(f"fit: {base:.0f} MiB + {slope * 1024 * 1024:.0f} bytes per word type\n")
    types = sum(
        expected_types(WMT14_PAIRS * WORDS_PER_LINE[lang], *fit_growth(points))
        for lang, points in GROWTH.items()
    )
    used = min(types, subwords.MOST_WORD_TYPES)
    sys.stdout.write(
        f"{WMT14_PAIRS} pairs: {types:.0f} word types expected, of which the {used:.0f} most "
        f"frequent are used: {base + slope * used:.0f} MiB; "
        f"all would take {base + slope * types:.0f} MiB\n"
    )


def _arguments() -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help=f"DIR/{FOLDER} is for text and results; what is there is replaced",
    )
    add("--pairs", type=int, default=500_000, help="pairs to generate (default: 500000)")
    add("--workers", type=int, default=2, help="processes (default: 2)")
    add("--learn-part", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Generate, prepare and print."""
    args = _arguments()
    folder = args.out / FOLDER
    if args.learn_part is not None:
        learn_part(folder, args.learn_part)
        return
    options.check_positive(args, "workers")
    if args.pairs < PARTS[0]:
        raise UserError(f"--pairs {args.pairs} is too few: it takes {PARTS[0]} at least")
    for lang in GROWTH:
        stream = sentences(lang, seed=1)
        for name, size in (("train", args.pairs), ("valid", 1000), ("test", 1000)):
            write_lines(islice(stream, size), folder / f"{name}.{lang}")
    # a step that an earlier run finished would not be measured
    shutil.rmtree(folder / "prepared", ignore_errors=True)
    whole = measure_steps(folder, args.workers)
    parts = [measure_part(folder, args.pairs // n) for n in PARTS]
    extrapolate([*parts, whole])


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
