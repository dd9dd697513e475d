"""A long training of HyboNet: no NaN, points that stay on the hyperboloid, memory that stays flat.

`hybonet_tiny` on a prepared text, with Noam's schedule at the paper's factor, 5, and for a fifth of
the updates at four times that, with embeddings stored as space coordinates and as points. Of every
100th update the loss, the drift, the radius and the memory of the process are kept; the table has
the worst of them. A soak that was stopped goes on where it was.

example: python -m recipes.benchmark.soak --data runs/quickstart/data
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.tables import markdown
from recipes.common import options, results
from recipes.common.runner import Runner
from recipes.common.steps import Step

FACTOR = 5
"""Of Noam's schedule in the HyboNet paper."""
HARDER, SHORTER = 4, 5
"""Factor and updates of the other trainings, against the first ones."""
WARMUP = 5
"""The share of the updates in which the rate grows is one in so many, as the paper's."""
LOG_INTERVAL = 100
MOST_DRIFT = 1e-4
MOST_GROWTH = 0.05
"""Of the memory, from the third fifth of a process's records to the last: before, it grows with the
shapes of batches that matrix products have not seen yet."""
_INNER = re.compile(r"\| train_inner \| (\{.*\})")


@dataclass(frozen=True)
class Training:
    """One training of the soak."""

    storage: str
    factor: int
    updates: int

    @property
    def name(self) -> str:
        return f"{self.storage}_{self.factor}"

    def step(self, data: Path, out: Path, max_tokens: int) -> Step:
        """Its command, which writes down what it logs."""
        save = out / self.name
        command = ["fairseq-train", str(data / "data-bin"), "--user-dir", "hyptrans"]
        command += ["--arch", "hybonet_tiny", "--embedding-storage", self.storage]
        command += ["--optimizer", "riemannian_adam", "--adam-betas", "(0.9, 0.98)"]
        command += ["--clip-norm", "0.5", "--lr", str(self.factor), "--lr-scheduler", "noam"]
        command += ["--warmup-updates", str(self.updates // WARMUP)]
        command += ["--max-update", str(self.updates), "--max-tokens", str(max_tokens)]
        command += ["--criterion", "tiled_label_smoothed_cross_entropy", "--label-smoothing", "0.1"]
        command += ["--disable-validation", "--save-dir", str(save), "--no-epoch-checkpoints"]
        command += ["--save-interval-updates", "1000", "--keep-interval-updates", "1"]
        command += ["--log-format", "json", "--log-interval", str(LOG_INTERVAL)]
        command += ["--num-workers", "0", "--seed", "1", "--cpu"]
        record = out / f"{self.name}.jsonl"
        return Step(
            f"soak_{self.name}",
            command,
            outputs=[save, record],
            progress=lambda line: note(line, record),
            resumes=True,
            precious=True,
        )


def plan(updates: int) -> list[Training]:
    """The trainings, the long ones first."""
    shorter = max(updates // SHORTER, 1)
    ways = ((FACTOR, updates), (FACTOR * HARDER, shorter))
    return [Training(storage, *way) for way in ways for storage in ("space", "manifold")]


def note(line: str, record: Path) -> str | None:
    """Keep what a training logs of an update, and the memory that it has."""
    found = _INNER.search(line)
    if found is None:
        return None
    logged = json.loads(found[1])
    entry = {name: float(logged[name]) for name in ("num_updates", "loss", "drift", "radius")}
    entry |= dict(zip(("process", "kib"), largest_child(), strict=True))
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    if entry["num_updates"] % (10 * LOG_INTERVAL):
        return None
    return f"update {entry['num_updates']:.0f}, loss {entry['loss']:g}, drift {entry['drift']:.1e}"


def largest_child() -> tuple[int, int]:
    """The process under this one with most memory, and its resident set in KiB; Linux only."""
    children = [
        int(child)
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return max(map(resident, children), key=lambda found: found[1], default=(os.getpid(), 0))


def resident(process: int) -> tuple[int, int]:
    """A process and its resident set in KiB, 0 where it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return process, 0
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return process, int(found[1]) if found else 0


def growth(entries: Sequence[Mapping[str, Any]]) -> float:
    """How much memory grew, as a share: the last fifth of a process's records over the third."""
    shares = [0.0]
    for process in {entry["process"] for entry in entries}:
        sizes = [entry["kib"] for entry in entries if entry["process"] == process]
        fifth = len(sizes) // 5
        if fifth:
            before = statistics.median(sizes[2 * fifth : 3 * fifth])
            shares.append(statistics.median(sizes[-fifth:]) / before - 1)
    return max(shares)


def row(training: Training, entries: list[dict[str, Any]]) -> list[object]:
    """A line of the table.

    Raises:
        UserError: points left the hyperboloid, or memory grew.
    """
    drift = max(entry["drift"] for entry in entries)
    grown = growth(entries)
    for entry in entries:
        # NaN is not below
        if not (entry["drift"] < MOST_DRIFT and entry["loss"] < math.inf):
            raise UserError(
                f"{training.name}: at update {entry['num_updates']:.0f} the loss is "
                f"{entry['loss']:g} and points are {entry['drift']:.1e} off their hyperboloid, "
                f"{MOST_DRIFT:g} is allowed"
            )
    if not grown < MOST_GROWTH:
        raise UserError(f"{training.name}: memory grew by {grown:.0%}, see its .jsonl file")
    return [
        f"{training.storage}, factor {training.factor}",
        f"{entries[-1]['num_updates']:,.0f}",
        f"{entries[0]['loss']:.2f}",
        f"{entries[-1]['loss']:.2f}",
        f"{drift:.1e}",
        f"{max(entry['radius'] for entry in entries):.2f}",
        f"{entries[-1]['kib'] / 1024:,.0f}",
        f"{grown:+.1%}",
    ]


HEADER = ["embeddings", "updates", "first loss", "last loss", "largest drift", "largest radius"]
HEADER += ["MiB", "growth"]


def main() -> None:
    """Train and print the table."""
    rows = list(soaked())
    print(f"\n{markdown(HEADER, rows)}")


def soaked() -> Iterator[list[object]]:
    """A row of every training, one after the other."""
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, default=Path("runs/quickstart/data"), help="(default: %(default)s)")
    add("--out", type=Path, default=Path("runs/soak"), help="folder (default: %(default)s)")
    add("--updates", type=int, default=20_000, help="of the long ones (default: %(default)s)")
    add("--max-tokens", type=int, default=128, help="of a batch (default: %(default)s)")
    args = parser.parse_args()
    options.check_positive(args, "max_tokens")
    if args.updates < SHORTER * LOG_INTERVAL:
        raise UserError(f"--updates {args.updates} is too short, {SHORTER * LOG_INTERVAL} at least")
    if not (args.data / "data-bin").is_dir():
        raise UserError(f"--data {args.data} is no prepared text: make quickstart makes one")
    runner = Runner(args.out)
    for training in plan(args.updates):
        step = training.step(args.data, args.out, args.max_tokens)
        runner.run(step)
        yield row(training, results.read_lines(step.outputs[1]))


if __name__ == "__main__":
    sys.exit(run_command(main))
