"""Pool the states of subwords to those of words.

A word's state is their mean in a flat space, their Lorentz centroid on the hyperboloid, and their
gyromidpoint on the ball, which is the centroid of the same points.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space


def pool(
    states: Tensor, pieces: Tensor, words: Tensor, count: int, spaces: Sequence[Space]
) -> Tensor:
    """Compute the states of words from those of their pieces, in each layer's space, in float64.

    Shapes: states ``[layers, P, D]``, ``pieces`` and ``words`` ``[N]`` (pairs of a piece and a word
    that it belongs to) -> ``[layers, count, D]``.
    """
    layers = zip(states, spaces, strict=True)
    return torch.stack([_pool(x.double()[pieces], words, count, space) for x, space in layers])


def _pool(points: Tensor, words: Tensor, count: int, space: Space) -> Tensor:
    if space.kind == "euclidean":
        members = torch.bincount(words, minlength=count).unsqueeze(-1)
        return _sum(points, words, count) / members
    if space.kind == "lorentz":
        # rounding moves float32 times off the hyperboloid; recompute them
        points = lorentz.lift(points[..., 1:], c=space.c)
        return lorentz.normalize(_sum(points, words, count), c=space.c)
    points = poincare.to_lorentz(points, c=space.c)
    centroids = lorentz.normalize(_sum(points, words, count), c=space.c)
    return poincare.from_lorentz(centroids, c=space.c)


def _sum(points: Tensor, words: Tensor, count: int) -> Tensor:
    return points.new_zeros(count, points.size(-1)).index_add_(0, words, points)
