"""The paired test against all tosses of small samples, and against what it must not find."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from probing.probes import significance
from probing.probes.metrics import Scores, mean_scores
from probing.probes.significance import compare

BY_LAYER = ("found", "roots", "dspr", "nspr")


def pair(seed, count=40, better=0.0):
    """Return made-up scores of two encoders on the same sentences; each is right half the time."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 12, count)
    arcs, made = (lengths - 1)[:, None], []
    for more in (better, 0.0):
        found = rng.binomial(arcs, min(0.5 + more, 1.0))[None].astype(float)
        roots = (rng.random((1, count)) < 0.5 + more).astype(float)
        dspr, nspr = (np.clip(rng.normal(more, 0.3, (1, count)), -1, 1) for _ in range(2))
        dspr[:, lengths < 5] = nspr[:, lengths < 5] = np.nan
        made.append(Scores(lengths, arcs, found, roots, dspr, nspr))
    return made


def swapped(first, second, which):
    """Return both runs with the results of some sentences exchanged."""
    rows = {}
    for name in BY_LAYER:
        one, other = getattr(first, name), getattr(second, name)
        which_rows = which[:, None] if name == "found" else which
        rows[name] = np.where(which_rows, other, one), np.where(which_rows, one, other)
    return [replace(first, **{name: row[k] for name, row in rows.items()}) for k in (0, 1)]


def test_p_is_the_share_of_exchanges_with_as_large_a_difference():
    first, second = pair(3, count=10, better=0.2)
    found = {c.metric: c for c in compare(first, second)}
    assert set(found) == {"uuas", "dspr", "root", "nspr"}
    differences = {metric: [] for metric in found}
    for which in product([False, True], repeat=10):
        one, other = (s.metrics()[0] for s in swapped(first, second, np.array(which)))
        for metric in found:
            differences[metric].append(one[metric] - other[metric])
    for metric, comparison in found.items():
        values = np.array(differences[metric])
        assert comparison.difference == pytest.approx(values[0])
        exact = (np.abs(values) >= abs(values[0]) - 1e-9).mean()
        # three standard errors of 10,000 tosses
        error = 3 * (exact * (1 - exact) / 1e4) ** 0.5 + 1e-3
        assert comparison.p == pytest.approx(exact, abs=error)


def test_similar_encoders_rarely_differ_significantly(monkeypatch):
    monkeypatch.setattr(significance, "TOSSES", 1000)
    ps = [c.p for seed in range(100) for c in compare(*pair(seed)) if c.metric == "uuas"]
    assert 0.0 <= np.mean(np.array(ps) < 0.05) < 0.11
    assert 0.4 < np.mean(ps) < 0.6


def test_a_large_difference_has_the_smallest_possible_p():
    (uuas, *_) = compare(*pair(1, count=300, better=0.3))
    assert uuas.difference > 0.2
    # twice the smaller of the two one-sided shares
    assert uuas.p == pytest.approx(2 / (1 + significance.TOSSES))
    # what one sentence says may as well be chance
    assert {c.p for c in compare(*pair(1, count=1, better=0.3))} == {1}
    first, _ = pair(1)
    assert all(c.p == 1 and c.difference == 0 for c in compare(first, first))


def test_significance_ignores_sentences_that_one_side_lacks():
    first, second = pair(2)
    second.roots[:] = second.nspr[:] = np.nan
    # one sentence without a correlation leaves the others
    second.dspr[0, np.flatnonzero(~np.isnan(first.dspr[0]))[0]] = np.nan
    assert [c.metric for c in compare(first, second)] == ["uuas", "dspr"]


def test_significance_averages_runs_by_sentence():
    first, second = pair(4)
    mean = mean_scores([first, second])
    assert mean.correct == pytest.approx((first.correct + second.correct) / 2)
    (whole,) = mean.metrics()
    for metric, value in whole.items():
        one, other = (scores.metrics()[0][metric] for scores in (first, second))
        assert value == pytest.approx((one + other) / 2)
