"""Means over seeds, and how likely two models differ by the choice of seeds alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any, TypeVar

from hyptrans.support.extras import require

Name = TypeVar("Name")
DRAWN = 99_999
"""Deals that a test draws where there are more; with at most as many it takes all of them."""


def spread(values: Sequence[float], decimals: int = 1) -> str:
    """Return the mean and, of several values, their standard deviation, for a table."""
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return f"{mean} ± {statistics.stdev(values):.{decimals}f}" if len(values) > 1 else mean


def permutation(some: Sequence[float], others: Sequence[float]) -> float:
    """Test whether two groups of scores differ: p, two-sided, 0 to 1.

    p is the part of the ways to deal all scores to the two groups that puts their means as far
    apart. The test is exact up to ``DRAWN`` deals and else draws so many with a fixed seed; it
    doubles the part of the side where the difference is.
    """
    test = require("scipy.stats", "probing").permutation_test

    def difference(one: Any, other: Any, axis: int) -> Any:
        return one.mean(axis=axis) - other.mean(axis=axis)

    return float(test((some, others), difference, n_resamples=DRAWN, rng=0).pvalue)


def floor(some: int, others: int) -> float:
    """Return the smallest p that :func:`permutation` can give two groups of these sizes."""
    deals = comb(some + others, some)
    return min(1.0, 2 / deals if deals <= DRAWN else 2 / (DRAWN + 1))


def holm(p: Mapping[Name, float]) -> dict[Name, float]:
    """Correct a family of p-values for its size (Holm 1979)."""
    corrected: dict[Name, float] = {}
    least = 0.0
    for place, name in enumerate(sorted(p, key=lambda name: p[name])):
        least = max(least, min(1.0, p[name] * (len(p) - place)))
        corrected[name] = least
    return corrected


def floors(p: Mapping[str, float], twin: str, scores: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the smallest value that each corrected p of a family can have."""
    return [min(1.0, len(p) * floor(len(scores[name]), len(scores[twin]))) for name in p]


def at_least(floors: Sequence[float]) -> str:
    """Say for a caption below which value no p can be; empty without p."""
    if not floors:
        return ""
    shown = dict.fromkeys(f"{one:.2g}" for one in (min(floors), max(floors)))
    return f" (at least {' to '.join(shown)})"


def against(twin: str, scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Test each model against the twin, corrected over the models; those of one seed are left out.

    Args:
        twin: its name; without its scores there is no test.
        scores: of each model, one for each seed.
    """
    baseline = scores.get(twin, ())
    several = {name: own for name, own in scores.items() if min(len(own), len(baseline)) > 1}
    p = {name: permutation(own, baseline) for name, own in several.items() if name != twin}
    return holm(p)


def sign_flips(differences: Sequence[float]) -> float:
    """Test whether paired differences are about 0: p, two-sided, by flipping their signs."""
    test = require("scipy.stats", "probing").permutation_test

    def mean(values: Any, axis: int) -> Any:
        return values.mean(axis=axis)

    kind = {"permutation_type": "samples", "n_resamples": DRAWN, "rng": 0}
    return float(test((differences,), mean, **kind).pvalue)
