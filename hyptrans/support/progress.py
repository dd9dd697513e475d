"""What a user sees of a run: a bar per step, counts in order, and where the time went."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def bar(
    items: Iterable[T], name: str, total: int | None = None, unit: str = " lines"
) -> Iterator[T]:
    """Pass ``items`` through and show on stderr how many went by."""
    # a log file gets a line every ten seconds, a terminal a moving bar
    interval = 0.2 if sys.stderr.isatty() else 10.0
    return iter(
        tqdm(items, desc=name, total=total, unit=unit, unit_scale=True, mininterval=interval)
    )


def by_name(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts in the order of their names, whatever order they were made in."""
    return dict(sorted(counts.items()))


class Stopwatch:
    """Wall-clock seconds per step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the time spent inside to ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + passed

    def table(self) -> str:
        """Return one line per step, seconds and share of the whole."""
        whole = sum(self.seconds.values()) or 1.0
        rows = [
            f"  {name:<24}{seconds:>9.1f} s {100 * seconds / whole:>5.1f} %"
            for name, seconds in self.seconds.items()
        ]
        return "\n".join(["time by step:", *rows])
