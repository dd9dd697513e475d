"""What a user sees of a run: a bar per step, counts in order, and where the time went."""

import sys
from collections.abc import Iterable, Iterator, Mapping
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


def time_table(seconds: Mapping[str, float | None]) -> str:
    """Return one line per step, seconds and share of the whole."""
    known = {name: spent or 0.0 for name, spent in seconds.items()}
    whole = sum(known.values()) or 1.0
    rows = [
        f"  {name:<24}{spent:>9.1f} s {100 * spent / whole:>5.1f} %"
        for name, spent in known.items()
    ]
    return "\n".join(["time by step:", *rows])
