"""Gromov's delta of trees and circles, the share of directions, and what a sample's error is."""

import itertools
import math
import statistics

import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space
from probing.geometry import measures
from probing.text.trees import distance_matrix
from tests.probing.helpers.trees import random_heads

LORENTZ, BALL, FLAT = Space("lorentz", 0.5), Space("poincare", 2.0), Space("euclidean")


def cloud(count, width=4, *, seed=0):
    return torch.randn(
        count, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


def four_points(found):
    """Half of how far the largest sum of opposite distances is above the second, at its largest."""
    worst = 0.0
    for a, b, c, d in itertools.combinations(range(len(found)), 4):
        sums = [found[a][b] + found[c][d], found[a][c] + found[b][d], found[a][d] + found[b][c]]
        _, second, first = sorted(map(float, sums))
        worst = max(worst, (first - second) / 2)
    return 2 * worst / float(found.max())


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_has_delta_zero(seed):
    found = torch.from_numpy(distance_matrix(random_heads(12, seed=seed))).double()
    assert measures.gromov_delta(found) == 0


def test_a_circle_of_four_has_the_largest_delta():
    found = torch.tensor([[0.0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])
    assert measures.gromov_delta(found) == 1


@pytest.mark.parametrize("where", [LORENTZ, FLAT])
def test_delta_is_that_of_all_quadruples(where):
    found = measures.distances(cloud(9), where)
    assert measures.gromov_delta(found) == pytest.approx(four_points(found), rel=1e-9)


def test_a_longer_circle_is_no_tree():
    places = torch.arange(7.0)
    found = (places[:, None] - places).abs()
    found = torch.minimum(found, 7 - found)
    assert measures.gromov_delta(found) == pytest.approx(four_points(found))


def test_equal_points_have_no_delta():
    assert math.isnan(measures.gromov_delta(torch.zeros(5, 5)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_than_four_points_have_no_delta(count):
    assert math.isnan(measures.gromov_delta(measures.distances(cloud(count), LORENTZ)))


@pytest.mark.parametrize("where", [LORENTZ, FLAT])
def test_nothing_is_told_of_points_that_rounding_alone_tells_apart(where):
    points = 2 * cloud(1).expand(30, -1)
    points = points + 1e-7 * cloud(30, seed=1)
    for function in (
        lambda sample: measures.gromov_delta(measures.distances(sample, where)),
        lambda sample: measures.direction_share(sample, where),
        lambda sample: measures.shuffled_share(sample, where),
    ):
        found = measures.over_samples(function, points, size=20, samples=3, seed=1)
        assert math.isnan(found.mean)
        assert math.isnan(found.error)


@pytest.mark.parametrize("where", [LORENTZ, BALL])
def test_lengths_and_distances_are_those_of_the_space_at_curvature_minus_one(where):
    module = lorentz if where is LORENTZ else poincare
    points = module.exp_origin(cloud(6), c=where.c)
    tangents = measures.vectors(points, where)
    wanted = module.distance(points[:, None], points[None], c=where.c) * where.c**0.5
    torch.testing.assert_close(measures.distances(tangents, where), wanted, atol=1e-7, rtol=1e-7)
    origin = torch.zeros_like(points[0])
    if where is LORENTZ:
        origin = lorentz.origin(len(origin), c=where.c, dtype=origin.dtype)
    radii = module.distance(points, origin.expand_as(points), c=where.c) * where.c**0.5
    torch.testing.assert_close(tangents.norm(dim=-1), radii, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("where", [LORENTZ, FLAT])
def test_directions_explain_all_on_a_sphere_nothing_on_a_ray_and_part_in_between(where):
    directions = torch.nn.functional.normalize(cloud(40), dim=-1)
    radii = torch.linspace(0.5, 6, 40, dtype=torch.float64)[:, None]
    assert measures.direction_share(3 * directions, where) == pytest.approx(1)
    assert measures.direction_share(radii * directions[:1], where) == 0
    assert 0 < measures.direction_share(radii * directions, where) < 0.9
    assert math.isnan(measures.direction_share(directions[:1].expand(40, -1), where))
    # one distance has no variance, no distance neither
    for few in (1, 2):
        assert math.isnan(measures.direction_share(directions[:few], where))
        assert math.isnan(measures.shuffled_share(directions[:few], where))


@pytest.mark.parametrize("where", [LORENTZ, FLAT])
def test_shuffled_radii_explain_what_they_explain_by_hand(where):
    directions = torch.nn.functional.normalize(cloud(40), dim=-1)
    assert measures.shuffled_share(3 * directions, where) == pytest.approx(1)
    radii = torch.linspace(0.5, 6, 40, dtype=torch.float64)[:, None]
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))

    def between(radii, i, j):
        """By the law of cosines, of flat and of hyperbolic space."""
        r, s, cosine = radii[i].item(), radii[j].item(), (directions[i] @ directions[j]).item()
        if where is FLAT:
            return math.sqrt(r * r + s * s - 2 * r * s * cosine)
        return math.acosh(math.cosh(r) * math.cosh(s) - math.sinh(r) * math.sinh(s) * cosine)

    pairs = [(i, j) for i in range(40) for j in range(i)]
    found, moved = ([between(r, i, j) for i, j in pairs] for r in (radii, radii[order]))
    share = measures.shuffled_share(radii * directions, where)
    assert share == pytest.approx(statistics.correlation(found, moved) ** 2, abs=1e-9)
    assert share < measures.direction_share(radii * directions, where)


def test_numbers_that_do_not_vary_have_no_correlation():
    ranks = torch.arange(10)
    assert measures.rank_correlation(ranks.exp(), ranks) == pytest.approx(1)
    assert math.isnan(measures.rank_correlation(5 + 1e-6 * ranks, ranks))


def test_samples_are_without_repetition_and_their_error_is_that_of_the_mean():
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
