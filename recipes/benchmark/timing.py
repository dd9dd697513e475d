"""Time and memory of a step on a device."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

MIB = 2**20
Step = Callable[[], object]
Key = TypeVar("Key")


def best_device() -> str:
    """The GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def seconds_of(step: Step, device: str) -> float:
    """Time of a step, until the device is done."""
    start = time.perf_counter()
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def in_turn(steps: Mapping[Key, Step], rounds: int, device: str) -> dict[Key, list[float]]:
    """Seconds of each step in each round; in a round, every step has its turn."""
    seconds: dict[Key, list[float]] = {key: [] for key in steps}
    for _ in range(rounds):
        for key, step in steps.items():
            seconds[key].append(seconds_of(step, device))
    return seconds


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The median over the rounds of one time over the other."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def peak_of(step: Step, device: str) -> float:
    """Memory in MiB that a step needs on top of what is held before it.

    On a GPU what torch allocated, on Linux the peak of the resident set, else NaN.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / MIB
    try:
        # what malloc keeps for later would hide what the step takes
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        step()
        return float("nan")
    before = _status("VmRSS")
    step()
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
