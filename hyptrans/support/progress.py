"""Show a run's progress: a bar per step."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def bar(
    items: Iterable[T],
    name: str,
    total: int | None = None,
    unit: str = " lines",
    delay: float = 0.0,
) -> Iterator[T]:
    """Yield ``items`` and show their count on stderr, once this has taken ``delay`` seconds."""
    # a log file gets a line every ten seconds, a terminal an animated bar
    interval = 0.2 if sys.stderr.isatty() else 10.0
    return iter(
        tqdm(
            items,
            desc=name,
            total=total,
            unit=unit,
            unit_scale=True,
            mininterval=interval,
            delay=delay,
        )
    )
