"""Lay out a sentence's words in the Poincare disk, and compute geodesics between them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hyptrans.geometry import lorentz, poincare
from probing.geometry.measures import rank_correlation

READABLE = (0.8, 4.0)
"""Range of the farthest word's geodesic radius that is readable; others are scaled into it."""

FARTHEST = 6.0
"""Largest geodesic radius at which words are drawn: 0.995 of the circle's radius."""
LEAST_LENGTH = 1e-300
"""Least divisor; replaces a length of zero, whose dividend is zero, too."""
LEAST_SPREAD = 1e-5
"""Smaller singular values and radii are rounding: probes give points in float32 with coordinates of
up to some hundreds."""


@dataclass(frozen=True)
class Disk:
    """Words in the unit disk, the root at its center."""

    points: Tensor
    """``[n, 2]``, float64, inside the unit circle."""
    scale: float
    """Factor on the radii in the picture; 1 if they are not scaled."""
    agreement: float
    """Spearman correlation of distances between words here and between the probe's points; NaN for
    fewer than three words or equal distances."""


def boost(points: Tensor, root: Tensor) -> Tensor:
    """Apply the Lorentz transformation without rotation that takes ``root`` to the origin.

    Shapes: points ``[n, D]``, root ``[D]``, of curvature -1 -> ``[n, D]``, float64.
    The map is an isometry; the space part of ``p`` becomes
    ``p_s - r_s (p_t - p_s . r_s / (1 + r_t))``.
    """
    points, root = (lorentz.lift(x[..., 1:].double()) for x in (points, root))
    time, space = root[0], root[1:]
    along = points[:, :1] - (points[:, 1:] @ space / (1 + time)).unsqueeze(-1)
    return lorentz.lift(points[:, 1:] - along * space)


def flatten(tangents: Tensor, fitted: Tensor) -> Tensor:
    """Map tangent vectors at one point to two dimensions; every vector keeps its length.

    The plane is spanned by the first two principal components, orthogonal to the mean, of the
    vectors marked in ``fitted``, so that they spread around the point: words one edge from the root
    are about orthogonal to each other, and a plane that holds their mean would put all on one side.
    A vector takes the direction of its projection on the plane.

    Shapes: tangents ``[n, D]``, fitted ``[n]`` (bool) -> ``[n, 2]``.
    On noisy embeddings of trees, the Spearman correlation of distances in the plane with the true
    ones is 0.83 to 0.91, and 0.67 to 0.75 without the orthogonality.
    """
    chosen = tangents[fitted] if bool(fitted.any()) else tangents
    mean = chosen.mean(0)
    mean = mean / mean.norm().clamp_min(LEAST_LENGTH)
    across = chosen - (chosen @ mean).unsqueeze(1) * mean
    _, values, components = torch.linalg.svd(across, full_matrices=False)
    # one or two vectors have too few directions orthogonal to their mean; it then serves as an axis
    axes = [axis for axis, value in zip(components, values, strict=True) if value > LEAST_SPREAD]
    axes = ([*axes, mean])[:2]
    plane = torch.zeros(len(tangents), 2, dtype=tangents.dtype)
    for column, axis in enumerate(axes):
        # fix the arbitrary sign of a direction, so that pictures are the same everywhere
        plane[:, column] = tangents @ axis * (1 if axis[axis.abs().argmax()] >= 0 else -1)
    length = plane.norm(dim=1, keepdim=True)
    ahead = torch.tensor([1.0, 0.0])
    heading = torch.where(length > 0, plane / length.clamp_min(LEAST_LENGTH), ahead)
    return heading * tangents.norm(dim=1, keepdim=True)


def place(points: Tensor | None, root: int, fitted: list[bool]) -> Disk | None:
    """Lay out the points of a sentence around its root; return None if there is nothing to show.

    Args:
        points: ``[n, D]`` in the Lorentz model of curvature -1, or None for a Euclidean probe.
        root: index of the word at the center; if outside ``0 ... n - 1``, the origin is the center.
        fitted: marks the words that determine the plane and the scale, ``[n]``.
    """
    if points is None or not len(points) or not bool(torch.isfinite(points).all()):
        return None
    at_root = 0 <= root < len(points)
    moved = boost(points, points[root] if at_root else lorentz.origin(points.shape[1]))
    tangents = lorentz.log_origin(moved)
    if at_root:
        tangents[root] = 0.0  # remove the boost's rounding of about 1e-16
    chosen = torch.tensor(fitted)
    plane = flatten(tangents, chosen)
    radii = plane.norm(dim=1)
    farthest = float((radii[chosen] if bool(chosen.any()) else radii).max())
    readable = min(max(farthest, READABLE[0]), READABLE[1])
    scale = readable / farthest if farthest > LEAST_SPREAD else 1.0
    # punctuation, which is outside the tree, may lie farther; keep it inside the circle
    shown = (radii * scale).clamp_max(FARTHEST) / radii.clamp_min(LEAST_LENGTH)
    flat = poincare.from_lorentz(lorentz.exp_origin(plane * shown.unsqueeze(-1)))
    return Disk(flat, scale, _agreement(lorentz.exp_origin(plane)[chosen], moved[chosen]))


def _agreement(drawn: Tensor, true: Tensor) -> float:
    """Return Spearman's correlation of all pairs' distances: ``[n, 3]`` and ``[n, D]``."""
    i, j = torch.triu_indices(len(true), len(true), 1)
    return rank_correlation(*(lorentz.distance(points[i], points[j]) for points in (drawn, true)))


def geodesics(start: Tensor, end: Tensor, count: int) -> Tensor:
    """Return points along geodesics of the disk, both ends included.

    On the hyperboloid these are the normalized mixtures of the ends.

    Shapes: ``[..., 2]`` twice -> ``[..., count, 2]``, float64.
    """
    ends = poincare.to_lorentz(torch.stack([start, end], -2).double())
    share = torch.linspace(0, 1, count, dtype=torch.float64)
    mixed = lorentz.normalize(torch.stack([1 - share, share], -1) @ ends)
    return poincare.from_lorentz(mixed)
