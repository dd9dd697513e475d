"""Time several ways in turn, measure memory, name the processor, and make up words."""

import ctypes
import platform
import re
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch

from hyptrans.inference.dictionary import Dictionary

Name = TypeVar("Name")


def in_turn(
    ways: Mapping[Name, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, list[float]]:
    """Return the seconds of each way by round; every way runs once per round."""
    seconds: dict[Name, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = clock()
            way()
            seconds[name].append(clock() - start)
    return seconds


def processor() -> str:
    """Return the processor's name and, if Linux reports them, its family and model."""
    information = Path("/proc/cpuinfo")
    text = information.read_text(encoding="utf-8") if information.exists() else ""
    found = dict(re.findall(r"^(model name|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    if len(found) < 3:
        return f"{platform.machine()} CPU"
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def peak_of(step: Callable[[], object], device: str) -> float:
    """Return the MiB that a step needs on top of the memory held before it.

    Measured is torch's allocated memory on a GPU, else the peak resident set on Linux, else NaN.
    """
    if device == "cuda":
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return (torch.cuda.max_memory_allocated() - held) / 2**20
    status = Path("/proc/self/status")
    try:
        # memory that malloc keeps for reuse would hide what the step takes
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        # makes the present memory the highest
        status.with_name("clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return float("nan")
    texts = [status.read_text(encoding="utf-8")]
    step()
    texts.append(status.read_text(encoding="utf-8"))
    held, most = (int(re.findall(r"VmHWM:\s+(\d+)", text)[0]) for text in texts)
    return (most - held) / 1024


def task(symbols: int) -> Namespace:
    """Return a translation task, for fairseq, between the words w4, w5 and so on."""
    words = Dictionary()
    for number in range(len(words), symbols):
        words.add(f"w{number}", 1)
    return Namespace(source_dictionary=words, target_dictionary=words)
