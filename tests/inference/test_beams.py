"""The best of many numbers, which the search over arrays takes."""

import numpy as np
import pytest

from hyptrans.inference.beams import best_of


@pytest.mark.parametrize("size", [3, 64, 65, 1000, 5504])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_best_of_a_row_are_those_of_a_full_sort(size, count):
    count = min(count, size - 1)
    scores = np.random.default_rng(size).normal(size=(7, size)).astype(np.float32)
    scores[3] = -np.inf
    values, places = best_of(scores, count)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    assert np.array_equal(values, np.take_along_axis(scores, order, 1))
    assert np.array_equal(np.take_along_axis(scores, places, 1), values)
    assert all(len(set(row)) == count for row in places.tolist())


def test_equal_numbers_are_taken_in_their_order():
    scores = np.zeros((1, 640), dtype=np.float32)
    assert best_of(scores, 5)[1].tolist() == [[0, 1, 2, 3, 4]]


def test_what_is_no_number_is_never_the_best():
    scores = np.full((1, 200), np.nan, dtype=np.float32)
    scores[0, 70], scores[0, 3] = 1, -5
    values, places = best_of(scores, 2)
    assert values.tolist() == [[1, -5]]
    assert places.tolist() == [[70, 3]]
