"""The best of many numbers, which the search over arrays takes."""

import numpy as np
import pytest

from hyptrans.inference.beams import best_of


@pytest.mark.parametrize("size", [3, 64, 1000])
@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_top_candidates_match_a_full_sort(size, count):
    count = min(count, size)
    scores = np.random.default_rng(size).normal(size=(7, size)).astype(np.float32)
    scores[3], scores[4, : size - 1] = -np.inf, np.nan
    values, places = best_of(scores, count)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    assert np.array_equal(values, np.take_along_axis(scores, order, 1), equal_nan=True)
    taken = np.take_along_axis(scores, places, 1)
    assert np.array_equal(taken, values, equal_nan=True)
    assert all(len(set(row)) == count for row in places.tolist())
