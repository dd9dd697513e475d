"""What a user sees of a run: a bar per step, and counts in order."""

import sys
from collections.abc import Iterable, Iterator, Mapping
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
    """Pass ``items`` through and show on stderr how many went by, if it takes ``delay`` seconds."""
    # a log file gets a line every ten seconds, a terminal a moving bar
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


def by_name(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts in the order of their names, whatever order they were made in."""
    return dict(sorted(counts.items()))
