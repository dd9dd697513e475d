"""Compare target tokens per second of CPU time: hyptrans train and fairseq-train in turn.

Both train the same architecture on the same data folder, with equally many tokens per batch. Each
turn is a separate process that counts only after its fifth update, without start-up or validation.
The ratio is the median over the rounds (above 1: hyptrans train is faster).

example: python -m recipes.benchmark.doors --data data --archs hybonet_plus_iwslt_d64
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import hyptrans.fairseq  # noqa: F401 - patches fairseq on import
from hyptrans.support.errors import UserError, run_command
from recipes.common import options
from recipes.common.commands import ROOT, say
from recipes.common.table import markdown

FIRST = 5
"""Number of first updates that do not count, because they compile kernels."""
SHARED = {"clip-norm": 0.5, "lr": 1e-3, "lr-scheduler": "polynomial_decay", "warmup-updates": 300}
SHARED |= {"dropout": 0.2, "attention-dropout": 0, "label-smoothing": 0.1, "seed": 1}
DOORS = ("hyptrans train", "fairseq-train")


def turn(door: str, updates: int, words: Sequence[str]) -> None:
    """Train; after the last update print tokens per CPU second and peak MiB, and exit."""
    done: list[tuple[int, float]] = []
    # what computes an update, and where its batch is
    place, name = ("fairseq.trainer", "train_step")
    if door == DOORS[0]:
        place, name = ("transformers", "training_step")
    trainer = importlib.import_module(place).Trainer
    step = getattr(trainer, name)

    def tokens(batch: Any) -> int:
        if door == DOORS[0]:
            return int(batch["labels"].ge(0).sum())
        return sum(sample["ntokens"] for sample in batch)

    def counted(self: Any, *given: Any, **more: Any) -> Any:
        made = step(self, *given, **more)
        batch = given[1] if door == DOORS[0] else given[0]
        done.append((tokens(batch), time.process_time()))
        if len(done) == updates:
            spent = done[-1][1] - done[FIRST - 1][1]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps([sum(n for n, _ in done[FIRST:]) / spent, peak]), flush=True)
            # without the end of a training: it would validate and save
            os._exit(0)
        return made

    setattr(trainer, name, counted)
    if door == DOORS[0]:
        sys.exit(importlib.import_module("hyptrans.commands.cli").main(["train", *words]))
    sys.argv = [door, *words]
    importlib.import_module("fairseq_cli.train").cli_main()


def measured(args: argparse.Namespace, arch: str, door: str) -> tuple[float, float]:
    """Run one turn in a process of its own; return tokens per CPU second and peak MiB."""
    flags = {"arch": arch, "max-tokens": args.max_tokens, "max-update": args.updates + 1, **SHARED}
    words = [str(word) for name, value in flags.items() for word in (f"--{name}", value)]
    with tempfile.TemporaryDirectory() as out:
        if door == DOORS[0]:
            words += [str(args.data), "--out", f"{out}/run", "--device", "cpu"]
            words += ["--validate-interval-updates", "1000000"]
        else:
            words += [str(args.data / "data-bin"), "--user-dir", "hyptrans", "--cpu", "--no-save"]
            words += ["--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--num-workers", "0"]
            words += ["--criterion", args.criterion, "--total-num-update", "3000"]
            words += ["--log-format", "simple"]
        code = f"from recipes.benchmark.doors import turn; turn({door!r}, {args.updates}, {words})"
        # CPU time would count threads that only wait for others
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise UserError(f"{door}: {said or f'exit status {done.returncode}'}")
    rate, peak = json.loads(done.stdout.splitlines()[-1])
    say(f"{arch} by {door}: {rate:,.0f} tokens a second, {peak:,.0f} MiB")
    return rate, peak


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
    args = parser.parse_args(argv)
    if args.data is None or args.updates <= FIRST:
        raise UserError(f"name the folder by --data, and more than {FIRST} --updates")
    args.data, rows = args.data.resolve(), []
    for arch in args.archs.split(","):
        turns = [[measured(args, arch, door) for door in DOORS] for _ in range(args.rounds)]
        rate, peak = (pd.DataFrame([[x[i] for x in both] for both in turns]) for i in (0, 1))
        ratios, rates, peaks = rate[0] / rate[1], rate.median(), peak.median()
        row: dict[str, Any] = {"architecture": arch}
        row |= {f"tokens/s, {door}": f"{rates[i]:,.0f}" for i, door in enumerate(DOORS)}
        row["ratio"] = f"{ratios.median():.2f} ({ratios.min():.2f} to {ratios.max():.2f})"
        rows.append(row | {f"peak MiB, {door}": f"{peaks[i]:,.0f}" for i, door in enumerate(DOORS)})
    print(markdown(pd.DataFrame(rows)))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped="the same command begins anew"))
