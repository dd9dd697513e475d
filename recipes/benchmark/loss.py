"""Time and peak memory of a training step with each criterion, models and twin side by side.

A step is forward, loss and backward on 128 sentences of 32 tokens, a vocabulary of 6,000; the ratio
is the time with fairseq's criterion over that in tiles, median of the rounds. Memory is what a step
takes on top of the parameters.

example: python -m recipes.benchmark.loss --size wmt_d64
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from typing import Any

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from hyptrans.fairseq.tiled import TiledCrossEntropy
from hyptrans.seq2seq.sizes import SIZES
from hyptrans.support import tables
from hyptrans.support.errors import run_command
from recipes.benchmark import contenders, timing
from recipes.benchmark.contenders import TWIN, Size
from recipes.common import options

CRITERIONS = {"fairseq's": LabelSmoothedCrossEntropyCriterion, "in tiles": TiledCrossEntropy}


def _arguments() -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add("--size", default="wmt_d64", choices=SIZES, help="a named size (default: wmt_d64)")
    add("--rounds", type=int, default=5, metavar="N", help="timed steps of each (default: 5)")
    timing.add_device(parser)
    return parser.parse_args()


def main() -> None:
    """Print the table."""
    args = _arguments()
    options.check_positive(args, "rounds")
    timing.check_device(args.device)
    rows = [row(name, args) for name in ("hybonet", TWIN)]
    header = ["model", "s, fairseq's", "s, in tiles", "ratio", "MiB, fairseq's", "MiB, in tiles"]
    print(tables.markdown(header, rows))


def row(name: str, args: argparse.Namespace) -> list[object]:
    """One model with both criterions."""
    size = Size(args.size, 32)
    model = contenders.build(name, args.device, size.fields()).train()
    steps = {label: step(model, kind, size, args.device) for label, kind in CRITERIONS.items()}
    for each in steps.values():
        each()
    peaks = [timing.peak_of(each, args.device) for each in steps.values()]
    plain, tiled = timing.in_turn(steps, args.rounds, args.device).values()
    seconds = (f"{statistics.median(times):.2f}" for times in (plain, tiled))
    return [name, *seconds, f"{timing.ratio(plain, tiled):.2f}", *(f"{p:,.0f}" for p in peaks)]


def step(model: Any, kind: Any, size: Size, device: str) -> Callable[[], None]:
    """Forward, loss and backward of one batch."""
    sample, loss_of = contenders.batch(size, device), contenders.criterion(kind)

    def run() -> None:
        loss, *_ = loss_of(model, sample)
        loss.backward()
        model.zero_grad()

    return run


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
