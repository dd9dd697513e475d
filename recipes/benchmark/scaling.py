"""Memory and time of Hypformer against the length, linear and softmax attention.

Every row is a process of its own, so that its peak memory is its own. A training step is forward,
backward and Adam on a pair of random sentences of the given length; a decoding step is one position
of a hypothesis that was decoded up to there.

On a processor, times are CPU seconds of the one thread in use, so that other programs do not count,
and memory is the peak of the resident set less what the process held before the first step. On a
GPU they are seconds until the device is done and the peak of what torch allocated.

example: python -m recipes.benchmark.scaling --attention linear --lengths 512 1024 2048 4096 8192
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from functools import partial

import torch
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor
from torch.nn import functional as F

from hyptrans.support.errors import UserError, run_command
from recipes.benchmark import contenders, timing
from recipes.common import options

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
ATTENTIONS = ("linear", "softmax")
LONGEST_SOFTMAX = 8192
"""Of the default lengths; beyond, a step on a processor takes minutes."""
POSITIONS = (100, 4000)
VOCABULARY = 1000
STEPS = 3
"""Training steps timed after the first, which warms up; the median counts."""
WINDOW = 40
"""Decoding steps timed around a position; the median counts."""


def build(arch: str, longest: int, attention: str, device: str) -> FairseqEncoderDecoderModel:
    """A fresh model that takes sentences of ``longest`` tokens."""
    fields = {**contenders.positions(longest), "hypformer_attention": attention}
    return contenders.build(arch, device, fields, vocabulary=VOCABULARY)


def tokens(length: int, device: str) -> Tensor:
    """One sentence of random words ``[1, length]``."""
    return torch.randint(4, VOCABULARY, (1, length), device=device)


def seconds_of(step: timing.Step, device: str) -> float:
    """CPU seconds of a step, or seconds until the GPU is done."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    return timing.seconds_of(step, device, clock)


def training(arch: str, length: int, attention: str, device: str) -> dict[str, float]:
    """Seconds and MiB of a training step."""
    model = build(arch, length, attention, device).train()
    optimizer = torch.optim.Adam(model.parameters())
    source, previous, target = (tokens(length, device) for _ in range(3))
    seconds: list[float] = []

    def step() -> None:
        logits, _ = model(source, None, previous)
        F.cross_entropy(logits[0], target[0]).backward()
        optimizer.step()
        optimizer.zero_grad()

    def steps() -> None:
        seconds.extend(seconds_of(step, device) for _ in range(1 + STEPS))

    peak = timing.peak_of(steps, device)
    return {"seconds": statistics.median(seconds[1:]), "mib": peak}


def decoding(arch: str, position: int, attention: str, device: str) -> dict[str, float]:
    """Seconds of a decoding step around a position."""
    model = build(arch, position + WINDOW, attention, device).eval()
    hypothesis = tokens(position + WINDOW, device)
    state: dict = {}

    def step(i: int) -> None:
        model.decoder(hypothesis[:, : i + 1], encoder_out, state)

    with torch.no_grad():
        encoder_out = model.encoder(tokens(32, device))
        seconds = [seconds_of(partial(step, i), device) for i in range(position + WINDOW)]
    return {"seconds": statistics.median(seconds[position:])}


def in_a_process(
    what: str, size: int, attention: str, args: argparse.Namespace
) -> dict[str, float]:
    """Measure in a fresh process.

    Raises:
        UserError: it failed, for example for lack of memory.
    """
    command = [
        sys.executable,
        "-m",
        "recipes.benchmark.scaling",
        "--measure",
        what,
        str(size),
        "--arch",
        args.arch,
    ]
    command += ["--attention", attention, "--device", args.device]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise UserError(f"measuring {what} at {size} failed with exit code {done.returncode}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def lengths_of(attention: str, args: argparse.Namespace) -> list[int]:
    """The lengths asked for, or the default ones that the attention is fit for."""
    if args.lengths is not None:
        return list(args.lengths)
    return [n for n in LENGTHS if attention == "linear" or n <= LONGEST_SOFTMAX]


def report(attention: str, args: argparse.Namespace) -> None:
    """Measure everything of an attention and print the tables, row by row."""
    write = partial(print, end="", flush=True)
    write(f"{args.arch}, --attention {attention}, batch of 1, {args.device}\n\n")
    write(f"{'length':>8}{'seconds':>11}{'growth':>8}{'peak MiB':>11}{'growth':>8}\n")
    last: dict[str, float] = {}
    for length in lengths_of(attention, args):
        row = in_a_process("training", length, attention, args)
        growth = {name: f"{row[name] / last[name]:.2f}" if last else "" for name in row}
        write(
            f"{length:>8}{row['seconds']:>11.3f}{growth['seconds']:>8}"
            f"{row['mib']:>11.0f}{growth['mib']:>8}\n"
        )
        last = row
    write(f"\n{'position':>8}{'ms a step':>11}{'ratio':>8}\n")
    first = 0.0
    for position in args.positions:
        milliseconds = in_a_process("decoding", position, attention, args)["seconds"] * 1000
        first = first or milliseconds
        write(f"{position:>8}{milliseconds:>11.2f}{milliseconds / first:>8.2f}\n")
    print()


def _arguments() -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add("--arch", default="hypformer_tiny", help="named architecture (default: hypformer_tiny)")
    add("--attention", choices=ATTENTIONS, nargs="+", default=ATTENTIONS, help="(default: both)")
    timing.add_device(parser)
    add(
        "--lengths",
        type=int,
        nargs="*",
        help=f"tokens of a sentence in training (default: {' '.join(map(str, LENGTHS))}; softmax "
        f"to {LONGEST_SOFTMAX})",
    )
    add(
        "--positions",
        type=int,
        nargs="*",
        default=POSITIONS,
        help=f"positions in decoding (default: {' '.join(map(str, POSITIONS))})",
    )
    add("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Print the tables, or measure one row."""
    args = _arguments()
    timing.check_device(args.device)
    if not args.measure:
        for attention in args.attention:
            report(attention, args)
        return
    torch.set_num_threads(1)
    what, size = args.measure
    measure = {"training": training, "decoding": decoding}[what]
    print(json.dumps(measure(args.arch, int(size), args.attention[0], args.device)))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
