"""Launches of a training step in bfloat16, and how long a GPU works on them.

example: python -m recipes.benchmark.gpu --json gpu.json
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from recipes.benchmark import contenders, speed
from recipes.common import options, results

ARCHS = (contenders.FAIRSEQ, contenders.TWIN, *speed.ALL)


def busy(arch: str) -> dict[str, tuple[int, float]]:
    """Return launches of a training step, and milliseconds that the GPU works, by width."""
    found = {}
    for size in (speed.SHORT, speed.WIDE):
        step = contenders.training_step(arch, size, "cuda", torch.bfloat16)
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            step()
            torch.cuda.synchronize()
        # the optimizer's span is no launch
        launched = [
            event
            for event in seen.key_averages()
            if event.device_type.name == "CUDA" and not event.key.startswith("Optimizer")
        ]
        time = sum(event.self_device_time_total for event in launched) / 1000
        found[f"d={size.dim}"] = sum(event.count for event in launched), round(time, 1)
    return found


def main() -> None:
    """Measure every architecture and write what was found after each."""
    parser = options.script_parser(__doc__, Path(__file__))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what is found there")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise UserError("torch finds no CUDA device here")
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), **results.surroundings()}
    for arch in ARCHS:
        found.setdefault("busy", {})[arch] = busy(arch)
        print(f"{arch}: {found['busy'][arch]}", flush=True)
        if args.json:
            write_json(args.json, found)


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
