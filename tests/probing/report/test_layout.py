"""The geometry of the pictures, against the hyperboloid's own distances."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from probing.report import arcs, disk, layout
from probing.report.data import Example, Prediction


def some_points(count, width, radius, rng):
    space = torch.randn(count, width - 1, generator=rng, dtype=torch.float64)
    return lorentz.exp_origin(space / space.norm(dim=1, keepdim=True) * radius)


def all_distances(points):
    return lorentz.distance(points[:, None], points[None])


@pytest.mark.parametrize("radius", [0.1, 6.0])
def test_boost_moves_the_root_to_the_origin_and_keeps_all_distances(radius, rng):
    points = some_points(20, 8, radius, rng)
    moved = layout.boost(points, points[3])
    assert lorentz.violation(moved).max() < 1e-12
    torch.testing.assert_close(moved[3], lorentz.origin(8, dtype=torch.float64), atol=1e-8, rtol=0)
    torch.testing.assert_close(all_distances(moved), all_distances(points), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("width", [2, 3, 64])
def test_disk_keeps_the_distances_from_the_root(width, rng):
    points = some_points(12, width, 1.0, rng)
    laid = layout.place(points, 4, [True] * 12)
    shown = poincare.distance(laid.points, torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(shown / laid.scale, lorentz.distance(points, points[4]))
    assert laid.points[4].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_up_to_three_words_in_three_dimensions_keep_all_their_distances(count, rng):
    points = some_points(count, 64, 0.8, rng)
    laid = layout.place(points, 0, [True] * count)
    radii = laid.points.norm(dim=1, keepdim=True)
    tangents = 2 * torch.atanh(radii) / laid.scale * laid.points / radii.clamp_min(1e-300)
    unscaled = lorentz.exp_origin(tangents)
    # two tangent vectors always lie in one plane, so here the picture is exact
    torch.testing.assert_close(all_distances(unscaled), all_distances(points), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("radius", "scaled"), [(1e-3, True), (1.0, False), (9.0, True)])
def test_layout_scales_only_radii_that_are_hard_to_see(radius, scaled, rng):
    points = some_points(6, 5, radius, rng)
    # without a root, the origin is the center
    laid = layout.place(points, -1, [True] * 6)
    drawn = 2 * math.atanh(float(laid.points.norm(dim=1).max()))
    assert (laid.scale != 1.0) == scaled
    assert drawn == pytest.approx(radius * laid.scale)
    assert layout.READABLE[0] - 1e-6 <= drawn <= layout.READABLE[1] + 1e-6


def test_coinciding_words_stay_at_the_center():
    laid = layout.place(lorentz.origin(6).expand(4, 6), 2, [True] * 4)
    assert laid.points.abs().max() == 0
    assert math.isnan(laid.agreement)


@pytest.mark.parametrize("points", [None, torch.full((3, 4), math.nan), torch.zeros(0, 4)])
def test_layout_draws_no_disk_without_points(points):
    assert layout.place(points, 0, [True] * 3) is None


def test_rings_and_points_along_a_geodesic_are_at_their_distances(rng):
    x = torch.tensor([math.tanh(2.0), 0.0], dtype=torch.float64)
    assert float(poincare.distance(x, torch.zeros_like(x))) == pytest.approx(4.0)
    p, q = torch.rand(2, 50, 2, generator=rng, dtype=torch.float64).sub(0.5) * 1.4
    way = layout.geodesics(p, q, 9)
    torch.testing.assert_close(way[:, [0, -1]], torch.stack([p, q], 1))
    steps = poincare.distance(way[:, 1:], way[:, :-1]).sum(-1)
    torch.testing.assert_close(steps, poincare.distance(p, q), rtol=1e-6, atol=1e-9)


def test_arcs_of_a_projective_tree_do_not_cross():
    edges = {(0, 1), (1, 9), (3, 5), (4, 5), (1, 5), (5, 7), (6, 7), (8, 9), (9, 12), (10, 12)}
    heights = arcs.levels(edges)
    ends, _ = arcs._slots(edges, [100.0 * i for i in range(13)], 9)
    places = sorted(x for pair in ends.values() for x in pair)
    assert min(b - a for a, b in itertools.pairwise(places)) >= arcs.SLOT - 1e-9
    for (i, j), (a, b) in itertools.permutations(edges, 2):
        assert heights[a, b] < heights[i, j] or not i <= a < b <= j
        (left, right), (first, second) = ends[i, j], ends[a, b]
        assert not left < first < right < second


def test_crossing_arcs_have_different_heights(rng):
    ends = torch.randint(20, (40, 2), generator=rng).tolist()
    heights = arcs.levels({(min(pair), max(pair)) for pair in ends if pair[0] != pair[1]})
    for ((i, j), height), ((a, b), other) in itertools.permutations(heights.items(), 2):
        assert not (i < a < j < b and height == other)


def test_score_matches_its_definition(rng):
    for _ in range(30):
        seed = int(torch.randint(1000, (1,), generator=rng))
        trees = (nx.random_labeled_tree(9, seed=seed + k).edges for k in (0, 1))
        gold, guess = ([(min(edge), max(edge)) for edge in tree] for tree in trees)
        marks = (torch.rand(9, generator=rng) < 0.3).tolist()
        root = int(torch.randint(1, 4, (1,), generator=rng))
        found = arcs.score(Example(["w"] * 9, gold, 2, marks, {}), Prediction(guess, root, None))
        keep = [frozenset(e) for e in gold if not any(marks[i] for i in e)]
        right = len(set(keep) & {frozenset(e) for e in guess})
        edges = f"{right} of {len(keep)} edges right" if keep else "no edge counts"
        assert found == f"{edges}, root {'right' if root == 2 else 'wrong'}"


def test_labels_in_the_disk_hardly_overlap(rng):
    places = torch.rand(25, 2, generator=rng) * 260 + 100
    boxes = disk._name([40.0] * 25, places.numpy(), np.zeros((0, 2)))
    covered = sum(float(disk._overlap(boxes[i : i + 1], boxes[i + 1 :])[0]) for i in range(24))
    assert covered == 0
    assert disk._outside(boxes).sum() == 0
