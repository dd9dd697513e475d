"""Time several ways in turn, and name the processor that ran them."""

import platform
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

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
