"""Is the difference of two encoders more than chance? A paired test over sentences.

Approximate randomization: if two encoders were alike, it would be a coin's toss which of them gave
which of a sentence's two results. The share of such tosses in which the metric differs at least as
much as it does is the p-value. Source: Noreen 1989, Computer-Intensive Methods for Testing
Hypotheses; Yeh 2000 for corpus metrics.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from probing.probes.metrics import METRICS, Scores

TOSSES = 10_000
_MOST_TOSSED = 4_000_000
"""Signs at a time, which bounds memory: 32 MB for each array of them."""


@dataclass(frozen=True)
class Comparison:
    """A metric of one encoder against another's, on the sentences where both are defined."""

    metric: str
    difference: float
    """First less second."""
    p: float
    """Two-sided; not corrected for the number of comparisons."""


def compare(first: Scores, second: Scores, *, seed: int = 1) -> list[Comparison]:
    """All metrics that both have, of scores of one row each.

    Raises:
        ValueError: they are of other sentences.
    """
    if not np.array_equal(first.edges, second.edges):
        raise ValueError("scores of different sentences cannot be paired")
    found, differences = [], []
    for metric in METRICS:
        used = _defined(first, metric) & _defined(second, metric)
        # a root that is undefined is so for all sentences, a correlation for some
        if not used.any() or (metric in ("uuas", "root") and not used.all()):
            continue
        if metric == "uuas" and not first.edges.any():
            continue
        pair = (scores.contributions(metric, used)[0] for scores in (first, second))
        found.append(metric)
        differences.append(np.subtract(*pair))
    if not found:
        return []
    paired = np.stack(differences, axis=-1)
    observed = paired.sum(0)
    # sums of tossed signs are equal to the observed ones up to rounding only
    least = np.abs(observed) - 1e-12
    extreme = np.zeros(len(found), int)
    for signs in _tosses(len(paired), seed):
        extreme += (np.abs(signs @ paired) >= least).sum(0)
    return [
        Comparison(metric, float(difference), (1 + int(count)) / (1 + TOSSES))
        for metric, difference, count in zip(found, observed, extreme, strict=True)
    ]


def _defined(scores: Scores, metric: str) -> np.ndarray:
    name = {"uuas": "correct", "root": "roots"}.get(metric, metric)
    defined: np.ndarray = ~np.isnan(getattr(scores, name)[0])
    return defined


def _tosses(sentences: int, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    most = max(1, _MOST_TOSSED // sentences)
    for start in range(0, TOSSES, most):
        yield rng.integers(0, 2, (min(most, TOSSES - start), sentences)) * 2.0 - 1.0
