"""Show a run's progress: a bar per step."""

import sys
from collections.abc import Iterable
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def interval() -> float:
    """Return the seconds between updates: a terminal's bar is animated, a log file grows slowly."""
    return 0.2 if sys.stderr.isatty() else 10.0


def bar(
    items: Iterable[T],
    name: str,
    total: int | None = None,
    unit: str = " lines",
    delay: float = 0.0,
) -> Iterable[T]:
    """Return ``items`` with a count on stderr, shown once they have taken ``delay`` seconds."""
    return tqdm(items, name, total, unit=unit, unit_scale=True, mininterval=interval(), delay=delay)
