"""The state of a word, made of those of its subwords.

In a flat space it is their mean, on the hyperboloid their Lorentz centroid and, on the ball, their
gyromidpoint, which is the centroid of the same points.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space


def pool(
    states: Tensor, pieces: Tensor, words: Tensor, count: int, spaces: Sequence[Space]
) -> Tensor:
    """States of words from those of their pieces, each layer in its own space, in float64.

    Shapes: states ``[layers, P, D]``, pairs ``pieces`` and ``words`` ``[N]`` (a piece belongs to a
    word) -> ``[layers, count, D]``.
    """
    return torch.stack(
        [
            _pool(x.double()[pieces], words, count, space)
            for x, space in zip(states, spaces, strict=True)
        ]
    )


def _pool(points: Tensor, words: Tensor, count: int, space: Space) -> Tensor:
    if space.kind == "euclidean":
        members = torch.bincount(words, minlength=count).unsqueeze(-1)
        return _sum(points, words, count) / members
    if space.kind == "lorentz":
        # float32 times are off the hyperboloid by rounding
        points = lorentz.lift(points[..., 1:], c=space.c)
        return lorentz.normalize(_sum(points, words, count), c=space.c)
    points = poincare.to_lorentz(points, c=space.c)
    centroids = lorentz.normalize(_sum(points, words, count), c=space.c)
    return poincare.from_lorentz(centroids, c=space.c)


def _sum(points: Tensor, words: Tensor, count: int) -> Tensor:
    return points.new_zeros(count, points.size(-1)).index_add_(0, words, points)
