"""Compute means over seeds, and test whether models differ by more than the choice of seeds."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import comb
from typing import Any, TypeVar

from hyptrans.support.extras import require

Name = TypeVar("Name")
DRAWN = 99_999
"""Most permutations that a test evaluates: all of them if there are no more, else a sample."""


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Write the mean and, for several values, their standard deviation for a table."""
    mean = format(statistics.fmean(values), form)
    return f"{mean} ± {statistics.stdev(values):{form}}" if len(values) > 1 else mean


def permutation(some: Sequence[float], others: Sequence[float]) -> float | None:
    """Test whether two groups of scores differ: p, two-sided, 0 to 1; None for a single score.

    p is the fraction of permutations (ways to split all scores into the two groups) whose means
    are at least as far apart: twice the fraction on the observed side. The test is exact up to
    ``DRAWN`` permutations, else it draws that many with a fixed seed.
    """
    return _p_value(
        (some, others), lambda one, other, axis: one.mean(axis) - other.mean(axis), "independent"
    )


def sign_flips(differences: Sequence[float]) -> float | None:
    """Return the two-sided p of paired differences around 0, by random flips of their signs."""
    return _p_value((differences,), lambda values, axis: values.mean(axis), "samples")


def _p_value(
    groups: Sequence[Sequence[float]], statistic: Callable[..., Any], kind: str
) -> float | None:
    if min(map(len, groups)) < 2:
        return None
    test = require("scipy.stats", "probing").permutation_test
    how = {"permutation_type": kind, "n_resamples": DRAWN, "rng": 0}
    return float(test(groups, statistic, **how).pvalue)


def holm(p: Mapping[Name, float | None]) -> dict[Name, float]:
    """Correct a family of p-values for its size (Holm 1979); leave out those that are None."""
    known = {name: value for name, value in p.items() if value is not None}
    names = sorted(known, key=lambda name: known[name])
    scaled = (min(1.0, known[name] * (len(known) - place)) for place, name in enumerate(names))
    return dict(zip(names, accumulate(scaled, max), strict=True))


def at_least(floors: Sequence[float]) -> str:
    """Write for a caption the smallest possible p; return empty text if there are no floors."""
    if not floors:
        return ""
    shown = dict.fromkeys(f"{one:.2g}" for one in (min(floors), max(floors)))
    return f" (at least {' to '.join(shown)})"


def against(
    twin: str, scores: Mapping[str, Sequence[float]]
) -> tuple[dict[str, float], list[float]]:
    """Test each model with several seeds against the twin; correct p over the models.

    Args:
        twin: the twin's name; without its scores there is no test.
        scores: scores of each model, one per seed.

    Returns:
        The corrected p by model, and the smallest possible value of each.
    """
    baseline = scores.get(twin, [])
    p = holm({name: permutation(own, baseline) for name, own in scores.items() if name != twin})
    counts = [comb(len(scores[name]) + len(baseline), len(baseline)) for name in p]
    return p, [min(1.0, len(p) * 2 / min(count, DRAWN + 1)) for count in counts]
