"""Points on their way between spaces, against distances that must not change."""

import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space, lorentz_points, map_layers, vectors

C = [0.25, 1.0, 4.0]
each_space = pytest.mark.parametrize(
    "space", [Space(kind, c) for kind in ("lorentz", "poincare") for c in C], ids=str
)


def points(space, rng):
    """Points within a distance of about 2.5 (at curvature -1) and their distances from another."""
    tangents = torch.randn(20, 5, generator=rng, dtype=torch.float64)
    if space.kind == "lorentz":
        x = lorentz.exp_origin(tangents / space.c**0.5, c=space.c)
        return x, lorentz.distance(x[:1], x, c=space.c)
    x = poincare.exp_origin(tangents / (2 * space.c**0.5), c=space.c)
    return x, poincare.distance(x[:1], x, c=space.c)


@each_space
def test_lorentz_points_keep_distances_up_to_the_scale_of_the_curvature(space, rng):
    x, distance = points(space, rng)
    lifted = lorentz_points(x, space)
    assert lorentz.violation(lifted).max() < 1e-12
    torch.testing.assert_close(lorentz.distance(lifted[:1], lifted), distance * space.c**0.5)


@each_space
def test_vectors_are_tangents_of_the_lorentz_points(space, rng):
    x, _ = points(space, rng)
    flat = vectors(x, space)
    assert flat.size(-1) == space.vector_width(x.size(-1))
    torch.testing.assert_close(lorentz.exp_origin(flat), lorentz_points(x, space))


def test_euclidean_vectors_stay_and_are_not_points(rng):
    x = torch.randn(3, 4, generator=rng)
    assert vectors(x, Space("euclidean")) is x
    with pytest.raises(ValueError, match="not points"):
        lorentz_points(x, Space("euclidean"))


def test_every_layer_uses_its_own_curvature(rng):
    spaces = [Space("lorentz", c) for c in C]
    x = torch.stack([points(space, rng)[0] for space in spaces])
    found = map_layers(vectors, x, spaces)
    for i, space in enumerate(spaces):
        torch.testing.assert_close(found[i], vectors(x[i], space))


@pytest.mark.parametrize(("kind", "c"), [("sphere", 1.0), ("lorentz", 0.0)])
def test_impossible_spaces_are_refused(kind, c):
    with pytest.raises(ValueError, match=r"kind of a space must be|above 0"):
        Space(kind, c)
