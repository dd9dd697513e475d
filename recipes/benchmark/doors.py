"""Compare target tokens per second of CPU time: hyptrans train and fairseq-train in turn.

Both train the same architecture on the same data folder, with equally many tokens per batch. Each
turn is a separate process that counts only after its fifth update, without start-up or validation.
The ratio is the median over the rounds (above 1: hyptrans train is faster).

example: python -m recipes.benchmark.doors --data data --archs hybonet_plus_iwslt_d64
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from recipes.common import options
from recipes.common.commands import ROOT, say

FIRST = 5
"""Number of first updates that do not count, because they compile kernels."""
SHARED = {"clip-norm": 0.5, "lr": 1e-3, "lr-scheduler": "polynomial_decay", "warmup-updates": 300}
SHARED |= {"dropout": 0.2, "attention-dropout": 0, "label-smoothing": 0.1, "seed": 1}
DOORS = ("hyptrans train", "fairseq-train")


class Counter:
    """Counts tokens and CPU seconds after the first updates."""

    def __init__(self) -> None:
        self.updates, self.tokens, self.since = 0, 0, 0.0

    def update(self, tokens: int) -> None:
        """Count an update that has just ended."""
        self.updates += 1
        if self.updates <= FIRST:
            self.since = time.process_time()
        else:
            self.tokens += tokens

    def show(self) -> None:
        """Print the rate and the peak memory as the last line, which the parent process reads."""
        rate = self.tokens / (time.process_time() - self.since)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(json.dumps([rate, peak]) + "\n")
        sys.stdout.flush()


def by_hyptrans(args: argparse.Namespace) -> None:
    """Train with ``hyptrans train`` and stop after the last update."""
    from transformers import TrainerCallback

    from hyptrans.commands.cli import main
    from hyptrans.train import run
    from hyptrans.train.batches import IGNORED

    counter, collate, tokens = Counter(), run.collate, [0]

    def counted(rows: Any, pad: int) -> Any:
        batch = collate(rows, pad)
        # the trainer fetches the batches of an update before it computes
        tokens[0] = int(batch["labels"].ne(IGNORED).sum())
        return batch

    class Count(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            counter.update(tokens[0])
            if counter.updates == args.updates:
                counter.show()
                shutil.rmtree(out)
                os._exit(0)

    vars(run).update(collate=counted, Progress=Count)
    with tempfile.TemporaryDirectory() as out:
        words = ["train", str(args.data), "--out", f"{out}/run", *_flags(args)]
        # only an error lets it return
        sys.exit(main([*words, "--device", "cpu", "--validate-interval-updates", "1000000"]))


def by_fairseq(args: argparse.Namespace) -> None:
    """Train with ``fairseq-train``."""
    import hyptrans.fairseq  # noqa: F401 - patches fairseq on import

    # isort: split
    from fairseq import trainer
    from fairseq_cli.train import cli_main

    counter, step = Counter(), trainer.Trainer.train_step

    def counted(self: Any, samples: Any, *given: Any, **more: Any) -> Any:
        made = step(self, samples, *given, **more)
        counter.update(sum(sample["ntokens"] for sample in samples))
        if counter.updates == args.updates:
            counter.show()
            os._exit(0)
        return made

    trainer.Trainer.train_step = counted
    words = ["fairseq-train", str(args.data / "data-bin"), "--user-dir", "hyptrans", "--cpu"]
    words += ["--optimizer", "adam", "--criterion", args.criterion, "--num-workers", "0"]
    words += ["--total-num-update", "3000", "--no-save", "--log-format", "simple"]
    sys.argv = [*words, "--adam-betas", "(0.9, 0.98)", *_flags(args)]
    cli_main()


def _flags(args: argparse.Namespace) -> list[str]:
    flags = {"arch": args.archs, "max-tokens": args.max_tokens, **SHARED}
    flags["max-update"] = args.updates + 1
    return [str(word) for name, value in flags.items() for word in (f"--{name}", value)]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = options.script_parser(__doc__, Path(__file__))
    add = parser.add_argument
    options.add_data(parser, "what hyptrans prepare wrote")
    add("--archs", default="hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64", metavar="A,B")
    about = "of fairseq-train (default: %(default)s)"
    add("--criterion", default="label_smoothed_cross_entropy", metavar="NAME", help=about)
    options.add_number(parser, "--updates", 25, "of a turn")
    options.add_number(parser, "--rounds", 5, "turns of each")
    options.add_number(parser, "--max-tokens", 4096, "of a batch")
    add("--turn", choices=DOORS, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.data is None or args.updates <= FIRST:
        raise UserError(f"name the folder by --data, and more than {FIRST} --updates")
    if args.turn:
        return by_hyptrans(args) if args.turn == DOORS[0] else by_fairseq(args)
    rows = []
    for arch in args.archs.split(","):
        # one row of figures per round
        found = [[_turn(args, arch, door) for door in DOORS] for _ in range(args.rounds)]
        middle = [statistics.median(one[i][0] for one in found) for i in (0, 1)]
        peaks = [statistics.median(one[i][1] for one in found) for i in (0, 1)]
        ratios = sorted(ours[0] / theirs[0] for ours, theirs in found)
        shown = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        rows.append(
            [arch, *(f"{one:,.0f}" for one in middle), shown, *(f"{x:,.0f}" for x in peaks)]
        )
    head = ["architecture", *(f"tokens/s, {door}" for door in DOORS), "ratio"]
    print(tables.markdown([*head, *(f"peak MiB, {door}" for door in DOORS)], rows))


def _turn(args: argparse.Namespace, arch: str, door: str) -> tuple[float, float]:
    words = ["--data", str(args.data), "--archs", arch, "--criterion", args.criterion]
    words += ["--updates", str(args.updates), "--max-tokens", str(args.max_tokens), "--turn", door]
    command = [sys.executable, "-m", "recipes.benchmark.doors", *words]
    # CPU time would count threads that only wait for others
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise UserError(f"{door}: {said or f'exit status {done.returncode}'}")
    rate, peak = json.loads(done.stdout.splitlines()[-1])
    say(f"{arch} by {door}: {rate:,.0f} tokens a second, {peak:,.0f} MiB")
    return rate, peak


if __name__ == "__main__":
    sys.exit(run_command(main, stopped="the same command begins anew"))
