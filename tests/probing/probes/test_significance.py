"""The paired test against all tosses of small samples, and against what it must not find."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from probing.probes import significance
from probing.probes.metrics import Scores, mean_scores
from probing.probes.significance import compare


def scores(rng, count=40, *, better=0.0):
    """Return made-up scores of an encoder that is right about half of the time."""
    lengths = rng.integers(3, 12, count)
    edges = lengths - 1
    correct = rng.binomial(edges, min(0.5 + better, 1.0))[None].astype(float)
    roots = (rng.random((1, count)) < 0.5 + better).astype(float)
    dspr, nspr = (np.clip(rng.normal(better, 0.3, (1, count)), -1, 1) for _ in range(2))
    dspr[:, lengths < 5] = nspr[:, lengths < 5] = np.nan
    return Scores(lengths, edges[:, None], correct[..., None], roots, dspr, nspr)


def pair(seed, count=40, better=0.0):
    first, second = (
        scores(np.random.default_rng((seed, k)), count, better=better * (k == 0)) for k in (0, 1)
    )
    values = {name: getattr(second, name) for name in ("found", "roots", "dspr", "nspr")}
    # of the first one's edges
    drawn = np.random.default_rng((seed, 2)).binomial(first.arcs, 0.5)
    values["found"] = drawn[None].astype(float)
    undefined = np.isnan(first.dspr)
    values["dspr"] = np.where(undefined, np.nan, np.nan_to_num(values["dspr"]))
    values["nspr"] = np.where(undefined, np.nan, np.nan_to_num(values["nspr"]))
    return first, replace(first, **values)


def swapped(first, second, which):
    """Return both runs with the results of some sentences exchanged."""
    rows = {}
    for name in ("found", "roots", "dspr", "nspr"):
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
        assert comparison.p == pytest.approx(
            exact, abs=3 * (exact * (1 - exact) / 1e4) ** 0.5 + 1e-3
        )


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
    second.roots[:] = np.nan
    second.nspr[:] = np.nan
    assert [c.metric for c in compare(first, second)] == ["uuas", "dspr"]
    # one sentence without a correlation leaves the others
    second.dspr[0, np.flatnonzero(~np.isnan(first.dspr[0]))[0]] = np.nan
    assert [c.metric for c in compare(first, second)] == ["uuas", "dspr"]


def test_significance_averages_runs_by_sentence():
    first, second = pair(4)
    mean = mean_scores([first, second])
    assert mean.correct == pytest.approx((first.correct + second.correct) / 2)
    (whole,) = mean.metrics()
    for metric, value in whole.items():
        one, other = first.metrics()[0][metric], second.metrics()[0][metric]
        assert value == pytest.approx((one + other) / 2)
