"""Test whether the difference of two encoders is more than chance, paired over sentences.

Approximate randomization: if two encoders were equally good, a coin toss could decide which of them
gave which of a sentence's two results. The p-value is the share of random assignments in which the
metric differs at least as much as observed. Source: Noreen 1989, Computer-Intensive Methods for
Testing Hypotheses; Yeh 2000 for corpus metrics.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import permutation_test  # type: ignore[import-untyped]

from probing.probes.metrics import METRICS, Scores

TOSSES = 10_000
_MOST_TOSSED = 4_000_000
"""Most results tossed at once, which bounds memory: 32 MB for each array of them."""


@dataclass(frozen=True)
class Comparison:
    """A metric of two encoders compared on the sentences where it is defined for both."""

    metric: str
    difference: float
    """First less second."""
    p: float
    """Two-sided; not corrected for the number of comparisons."""


def compare(first: Scores, second: Scores, *, seed: int = 1) -> list[Comparison]:
    """Compare two one-row scores by all metrics that both have.

    Raises:
        ValueError: they belong to different sentences.
    """
    if not np.array_equal(first.edges, second.edges):
        raise ValueError("scores of different sentences cannot be paired")
    found = []
    for metric in METRICS:
        pair = [scores.contributions(metric)[0] for scores in (first, second)]
        used = ~(np.isnan(pair[0]) | np.isnan(pair[1]))
        if not used.any():
            continue
        # an average over the sentences where both are defined has other weights
        pair = [np.nan_to_num(one.contributions(metric, used)[0]) for one in (first, second)]
        difference = float(np.subtract(*pair).sum())
        found.append(Comparison(metric, difference, _p_value(pair, seed)))
    return found


def _p_value(pair: list[np.ndarray], seed: int) -> float:
    if len(pair[0]) < 2:
        # with one sentence both assignments differ equally
        return 1.0
    tested = permutation_test(
        pair,
        lambda x, y, axis: (x - y).sum(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=TOSSES,
        batch=max(1, _MOST_TOSSED // len(pair[0])),
        rng=np.random.default_rng(seed),
    )
    return float(tested.pvalue)
