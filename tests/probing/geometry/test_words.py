"""Measures of an encoder's space from its word states."""

import math
from collections import Counter

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from probing.geometry.layers import measure, verdict
from probing.geometry.words import words_of
from probing.text.trees import distance_matrix
from tests.probing.helpers.states import MemoryStates
from tests.probing.helpers.trees import sentence_of

TREES = [sentence_of([head - 1 for head in heads]) for heads in ([2, 0, 2, 3], [0, 1], range(5))]
"""Three trees; the one in the middle has no states."""
COUNTS = Counter({"w0": 9, "w1": 7, "w2": 5, "w3": 3, "w4": 1})


def states(vectors):
    """Two layers of points above tangent vectors, the second at one radius."""
    layers = []
    for own in vectors:
        level = 2 * own / own.norm(dim=-1, keepdim=True)
        layers.append(torch.stack([lorentz.exp_origin(one).float() for one in (own, level)]))
    return MemoryStates(layers, [Space("lorentz", 1.0)] * 2, kept=[0, 2])


class Reader:
    """Split text as an encoder does: at spaces, and chosen words in two."""

    max_tokens = 100

    def __init__(self, *cut):
        self.cut = cut

    def tokenize(self, text):
        found, start = [], 0
        for word in text.split(" "):
            ends = [1, len(word)] if word in self.cut else [len(word)]
            for before, end in zip([0, *ends], ends, strict=False):
                found.append((9, (start + before, start + end)))
            start += len(word) + 1
        return found


def test_a_radius_equal_to_the_depth_correlates_with_it(rng):
    vectors = []
    for tree in (TREES[0], TREES[2]):
        directions = torch.randn(len(tree), 3, generator=rng, dtype=torch.float64)
        directions /= directions.norm(dim=-1, keepdim=True)
        depths = distance_matrix(tree.heads)[tree.root]
        vectors.append(directions * torch.from_numpy(1 + depths)[:, None])
    # rare words are far out too: words of the second sentence stand as often as they are deep
    free, level = measure(words_of(states(vectors), TREES, Reader(), COUNTS))
    # rounding parts words of one depth
    assert free.with_depth > 0.95
    assert free.with_frequency < -0.5 < 0.5 < free.with_position
    radii = torch.cat(vectors).norm(dim=-1)
    assert (free.radius, free.spread) == pytest.approx((float(radii.mean()), float(radii.std())))
    assert level.radius == pytest.approx(2, rel=1e-5)
    assert math.isnan(level.with_depth)
    assert "uses the curvature in " in verdict([free, level])


def test_words_of_several_tokens_are_left_out(rng):
    stored = states([torch.randn(len(TREES[i]), 3, generator=rng) for i in (0, 2)])
    found = words_of(stored, TREES, Reader("w1", "w4"), COUNTS)
    assert found.frequency.tolist() == [9, 5, 3, 9, 5, 3]
    assert found.position.tolist() == [0, 2, 3, 0, 2, 3]
    assert found.depth.tolist() == [1, 1, 2, 0, 2, 3]
    both = [stored.sentence(i)[:, [0, 2, 3]] for i in (0, 1)]
    assert torch.equal(found.states, torch.cat(both, 1))
    assert len(words_of(stored, TREES, Reader(*COUNTS), COUNTS).position) == 0
