"""Gromov's delta, stress of the best flat embedding, and what words' states are measured by."""

import itertools
import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space, vectors
from probing.geometry import measures
from probing.geometry.layers import measure, verdict
from probing.geometry.words import words_of
from probing.text.trees import distance_matrix
from tests.probing.helpers.states import MemoryStates
from tests.probing.helpers.trees import random_heads, sentence_of

LORENTZ, BALL, FLAT = Space("lorentz", 0.5), Space("poincare", 2.0), Space("euclidean")


def cloud(count, width=4, *, seed=0):
    return torch.randn(
        count, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


def four_points(found):
    """Return the largest half difference of the two largest sums of opposite distances."""
    worst = 0.0
    for a, b, c, d in itertools.combinations(range(len(found)), 4):
        sums = [found[a][b] + found[c][d], found[a][c] + found[b][d], found[a][d] + found[b][c]]
        _, second, first = sorted(map(float, sums))
        worst = max(worst, (first - second) / 2)
    return 2 * worst / float(found.max())


def test_delta_is_zero_for_a_tree_one_for_a_circle_and_undefined_for_three_points():
    found = torch.from_numpy(distance_matrix(random_heads(12, seed=0))).double()
    assert measures.gromov_delta(found) == 0
    found = torch.tensor([[0.0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])
    assert measures.gromov_delta(found) == 1
    assert math.isnan(measures.gromov_delta(found[:3, :3]))


@pytest.mark.parametrize("where", [LORENTZ, FLAT])
def test_delta_matches_a_loop_over_all_quadruples(where):
    found = measures.distances(cloud(9), where)
    assert measures.gromov_delta(found) == pytest.approx(four_points(found), rel=1e-9)


@pytest.mark.parametrize("where", [LORENTZ, FLAT])
def test_points_that_differ_only_by_rounding_have_no_measures(where):
    points = 2 * cloud(1).expand(30, -1)
    points = points + 1e-7 * cloud(30, seed=1)
    for function in (
        lambda sample: measures.gromov_delta(measures.distances(sample, where)),
        lambda sample: measures.flat_stress(sample, where),
        lambda sample: measures.tangent_stress(sample, where),
    ):
        found = measures.over_samples(function, points, size=20, samples=3, seed=1)
        assert math.isnan(found.mean)
        assert math.isnan(found.error)


@pytest.mark.parametrize("where", [LORENTZ, BALL])
def test_distances_are_scaled_to_curvature_minus_one(where):
    module = lorentz if where is LORENTZ else poincare
    points = module.exp_origin(cloud(6), c=where.c)
    tangents = vectors(points, where)
    wanted = module.distance(points[:, None], points[None], c=where.c) * where.c**0.5
    torch.testing.assert_close(measures.distances(tangents, where), wanted, atol=1e-7, rtol=1e-7)


def circle(count, radius, *, first=0.0):
    """Tangents of points spread evenly over a circle."""
    angles = 2 * math.pi * (torch.arange(count, dtype=torch.float64) + first) / count
    return radius * torch.stack([angles.cos(), angles.sin()], 1)


def least_stress(tangents):
    """By SciPy's minimizer, over distances from the law of cosines of hyperbolic triangles."""
    count, width = tangents.shape
    pairs = list(itertools.combinations(range(count), 2))
    radii = tangents.norm(dim=-1)

    def between(i, j):
        r, s = radii[i].item(), radii[j].item()
        cosine = (tangents[i] @ tangents[j]).item() / (r * s)
        return math.acosh(math.cosh(r) * math.cosh(s) - math.sinh(r) * math.sinh(s) * cosine)

    wanted = np.array([between(*pair) for pair in pairs])
    i, j = np.array(pairs).T

    def stress(flat):
        points = flat.reshape(count, width)
        missed = np.linalg.norm(points[i] - points[j], axis=-1) - wanted
        return math.sqrt((missed**2).sum() / (wanted**2).sum())

    draws = np.random.default_rng(0).normal(size=(6, count * width))
    return min(minimize(stress, start).fun for start in draws)


@pytest.mark.parametrize("seed", range(2))
def test_flat_stress_matches_the_minimum_of_a_general_minimizer(seed):
    tangents = 3 * cloud(7, 2, seed=seed)
    assert measures.flat_stress(tangents, LORENTZ) == pytest.approx(
        least_stress(tangents), rel=0.01
    )


@pytest.mark.parametrize("width", [2, 40])
def test_a_small_ball_is_flat_whatever_its_radii(width):
    assert measures.flat_stress(0.01 * cloud(100, width), LORENTZ) < 1e-3
    assert measures.tangent_stress(0.01 * cloud(100, width), LORENTZ) < 1e-3


@pytest.mark.parametrize("away", [0.0, 2.0], ids=["through the origin", "past the origin"])
def test_points_on_one_geodesic_are_flat(away):
    along = torch.linspace(-4, 4, 60, dtype=torch.float64)
    # the geodesic at distance `away` from the origin, in coordinates of the hyperboloid
    x, y, time = along.sinh(), along.cosh() * math.sinh(away), along.cosh() * math.cosh(away)
    tangents = lorentz.log_origin(torch.stack([time, x, y], 1))
    assert measures.flat_stress(tangents, LORENTZ) < 1e-3
    assert (measures.tangent_stress(tangents, LORENTZ) < 1e-3) == (away == 0)


def test_spheres_binary_trees_and_their_leaves_are_curved():
    on_sphere = 5 * torch.nn.functional.normalize(cloud(150, 8), dim=-1)
    assert measures.flat_stress(on_sphere, LORENTZ) > 0.1
    # the nodes of a tree: radii are depths, and children share their parent's angle
    tree = torch.cat([circle(2**k, float(k), first=0.5) for k in range(7)])
    assert measures.flat_stress(tree, LORENTZ) == pytest.approx(0.26, abs=0.005)
    assert measures.flat_stress(tree[-64:], LORENTZ) > 0.25


@pytest.mark.parametrize("stress", [measures.flat_stress, measures.tangent_stress])
def test_flat_vectors_have_zero_stress(stress):
    assert stress(5 * cloud(30), FLAT) == pytest.approx(0, abs=1e-12)
    assert math.isnan(stress(cloud(1), LORENTZ))
    assert math.isnan(stress(cloud(1).expand(5, -1), LORENTZ))
    # pairs of points in one place
    assert 0.01 < stress(cloud(20, 3).repeat(2, 1), LORENTZ) < 0.2


def test_constant_numbers_have_no_correlation():
    ranks = torch.arange(10)
    assert measures.rank_correlation(ranks.exp(), ranks) == pytest.approx(1)
    assert math.isnan(measures.rank_correlation(5 + 1e-6 * ranks, ranks))


def test_samples_do_not_repeat_and_report_the_standard_error():
    points = torch.arange(100.0)[:, None]

    def sample(found):
        assert len(found) == len(found.unique()) == 10
        return float(found.mean())

    found = measures.over_samples(sample, points, size=10, samples=400, seed=1)
    # of a mean of 10 of the numbers 0 ... 99, drawn without repetition
    wanted = math.sqrt((100**2 - 1) / 12 / 10 * (90 / 99)) / math.sqrt(400)
    assert found.error == pytest.approx(wanted, rel=0.1)
    assert found.mean == pytest.approx(49.5, abs=4 * wanted)
    assert math.isnan(measures.over_samples(len, points, size=100, samples=5, seed=1).error)


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
        found = []
        for word in re.finditer(r"\S+", text):
            start, end = word.span()
            inside = [start + 1] if word[0] in self.cut else []
            found += [(9, span) for span in pairwise([start, *inside, end])]
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
