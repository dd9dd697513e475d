"""Where the words of a sentence lie in the Poincare disk, and the geodesics between them."""

import math
from dataclasses import dataclass

import torch
from scipy.stats import spearmanr  # type: ignore[import-untyped]
from torch import Tensor

from hyptrans.geometry import lorentz, poincare

READABLE = (0.8, 4.0)
"""Geodesic radii of the farthest word that a picture shows well; beyond them it is scaled."""

FARTHEST = 6.0
"""Geodesic radius at which words outside the tree are kept: 0.995 of the circle's."""
LEAST_LENGTH = 1e-300
"""In place of a length that is divided by: what it divides is zero then, too."""
LEAST_SPREAD = 1e-5
"""Singular values, radii and distances that differ by less are the rounding of equal ones: probes
give points in float32, with coordinates of up to some hundreds."""


@dataclass(frozen=True)
class Disk:
    """Words in the unit disk, the root at its center."""

    points: Tensor
    """``[n, 2]``, float64, inside the unit circle."""
    radii: Tensor
    """``[n]``, geodesic distances from the root before any scaling."""
    scale: float
    """Factor on the radii in the picture, 1 where they are shown as they are."""
    agreement: float
    """Spearman correlation of the distances between words here and among the probe's points; NaN
    for fewer than three words."""


def boost(points: Tensor, root: Tensor) -> Tensor:
    """The Lorentz transformation without rotation that takes ``root`` to the origin.

    Shapes: points ``[n, D]``, root ``[D]``, of curvature -1 -> ``[n, D]``, float64.
    Range: an isometry; the space part of ``p`` becomes
    ``p_s - r_s (p_t - p_s . r_s / (1 + r_t))``.
    """
    points, root = (lorentz.lift(x[..., 1:].double()) for x in (points, root))
    time, space = root[0], root[1:]
    along = points[:, :1] - (points[:, 1:] @ space / (1 + time)).unsqueeze(-1)
    return lorentz.lift(points[:, 1:] - along * space)


def flatten(tangents: Tensor, fitted: Tensor) -> Tensor:
    """Two dimensions of tangent vectors at one point, every vector keeping its length.

    The plane is that of the first two principal components of the vectors marked in ``fitted``,
    orthogonal to their mean, so that they lie around the point: words one edge from the root are
    about orthogonal to each other, and in a plane that holds the mean all fall on one side. A
    vector's direction is that of its projection on the plane.

    Shapes: tangents ``[n, D]``, fitted ``[n]`` (bool) -> ``[n, 2]``.
    Range: on noisy embeddings of trees, distances in the plane follow the true ones with a Spearman
    correlation of 0.83 to 0.91, and of 0.67 to 0.75 without the orthogonality.
    """
    chosen = tangents[fitted] if bool(fitted.any()) else tangents
    mean = chosen.mean(0)
    mean = mean / mean.norm().clamp_min(LEAST_LENGTH)
    _, values, components = torch.linalg.svd(
        chosen - (chosen @ mean).unsqueeze(1) * mean, full_matrices=False
    )
    # one or two vectors leave nothing orthogonal to their mean, which then is a direction itself
    axes = [axis for axis, value in zip(components, values, strict=True) if value > LEAST_SPREAD]
    axes = ([*axes, mean])[:2]
    plane = torch.zeros(len(tangents), 2, dtype=tangents.dtype)
    for column, axis in enumerate(axes):
        # the sign of a direction is arbitrary: fix it, so that pictures are the same everywhere
        plane[:, column] = tangents @ axis * (1 if axis[axis.abs().argmax()] >= 0 else -1)
    length = plane.norm(dim=1, keepdim=True)
    ahead = torch.tensor([1.0, 0.0])
    heading = torch.where(length > 0, plane / length.clamp_min(LEAST_LENGTH), ahead)
    return heading * tangents.norm(dim=1, keepdim=True)


def place(points: Tensor | None, root: int, fitted: list[bool]) -> Disk | None:
    """Lay out the points of a sentence around its root; None where there is nothing to show.

    Args:
        points: ``[n, D]`` of the Lorentz model of curvature -1, or None for a Euclidean probe.
        root: index of the word at the center; outside ``0 ... n - 1``, the origin stays there.
        fitted: words that choose the plane and the scale, ``[n]``.
    """
    if points is None or not len(points) or not bool(torch.isfinite(points).all()):
        return None
    at_root = 0 <= root < len(points)
    moved = boost(points, points[root] if at_root else lorentz.origin(points.shape[1]))
    tangents = lorentz.log_origin(moved)
    if at_root:
        tangents[root] = 0.0  # rounding of the boost leaves about 1e-16
    chosen = torch.tensor(fitted)
    plane = flatten(tangents, chosen)
    radii = plane.norm(dim=1)
    farthest = float((radii[chosen] if bool(chosen.any()) else radii).max())
    readable = min(max(farthest, READABLE[0]), READABLE[1])
    scale = readable / farthest if farthest > LEAST_SPREAD else 1.0
    # words outside the tree, punctuation, may lie farther; keep them inside the circle
    shown = (radii * scale).clamp_max(FARTHEST) / radii.clamp_min(LEAST_LENGTH)
    flat = poincare.from_lorentz(lorentz.exp_origin(plane * shown.unsqueeze(-1)))
    return Disk(flat, radii, scale, _agreement(lorentz.exp_origin(plane)[chosen], moved[chosen]))


def _agreement(drawn: Tensor, true: Tensor) -> float:
    """Spearman correlation of the distances of all pairs: ``[n, 3]`` and ``[n, D]``."""
    i, j = torch.triu_indices(len(true), len(true), 1)
    if len(i) < 3:
        return math.nan
    pairs = [lorentz.distance(points[i], points[j]) for points in (drawn, true)]
    if any(float(found.max() - found.min()) < LEAST_SPREAD for found in pairs):
        return math.nan
    return float(spearmanr(*pairs).statistic)


def to_disk(radius: float) -> float:
    """Euclidean distance from the center of the disk at a geodesic radius."""
    return math.tanh(radius / 2)


def geodesics(start: Tensor, end: Tensor, count: int) -> Tensor:
    """Points along geodesics of the disk, both ends included.

    On the hyperboloid they are the normalized mixtures of the ends.

    Shapes: ``[..., 2]`` twice -> ``[..., count, 2]``, float64.
    """
    ends = poincare.to_lorentz(torch.stack([start, end], -2).double())
    share = torch.linspace(0, 1, count, dtype=torch.float64)
    mixed = lorentz.normalize(torch.stack([1 - share, share], -1) @ ends)
    return poincare.from_lorentz(mixed)
