"""How a cloud of points lies in its space: how far from flat, how far from a tree."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import spearmanr  # type: ignore[import-untyped]
from torch import Tensor

from hyptrans.geometry import lorentz, space
from hyptrans.geometry.space import Space

EQUAL = 1e-4
"""Radii whose spread is at most so much of their mean are one radius: float32 tells no less of the
times of points far out."""
ONE_PLACE = 1e-5
"""Tangents that differ from their mean by at most so much of its length are one point, which
rounding of float32 numbers shows in several places."""
SMACOF_STEPS, SMACOF_TOLERANCE = 300, 1e-4
"""Most steps from a start; a step that lowers the stress by a smaller share is the last."""


@dataclass(frozen=True)
class Estimate:
    """A mean over random samples, and its standard error."""

    mean: float
    error: float


def vectors(points: Tensor, where: Space) -> Tensor:
    """Tangent vectors at the origin in float64, whose lengths are radii in units of curvature -1.

    Shapes: ``[N, D]`` -> ``[N, D]``, or ``[N, D - 1]`` from the Lorentz model; flat vectors are
    what they are.
    """
    return space.vectors(points.double(), where)


def distances(tangents: Tensor, where: Space) -> Tensor:
    """Geodesic distances between all pairs of points with such tangent vectors at the origin.

    Shapes: ``[N, D]`` -> ``[N, N]``, in units of curvature -1; of a flat space, Euclidean ones.
    """
    if where.kind == "euclidean":
        return torch.cdist(tangents, tangents, compute_mode="donot_use_mm_for_euclid_dist")
    points = lorentz.exp_origin(tangents)
    return lorentz.distance(points[:, None], points[None])


def flat_stress(tangents: Tensor, where: Space) -> float:
    """Stress of the best embedding of the points' distances in a flat space of as many dimensions.

    The square root of the sum of squared differences between both spaces' distances, over the sum
    of the squares of the own ones: 0 where a flat space holds all distances, .02 where it misses
    them by 2 %. SMACOF minimizes it from three starts: the tangents, classical scaling, and random
    vectors. A flat space has none.

    Shapes: ``[N, D]``, points by their tangent vectors at the origin. Range: ``[0, 1]``; NaN for
    points in one place. More points never have less stress, and up to ``D + 1`` often have none.
    Source: Kruskal (1964), stress-1; De Leeuw (1977) and Borg and Groenen (2005), ch. 8, SMACOF.
    """
    if _in_one_place(tangents):
        return math.nan
    if where.kind == "euclidean":
        return 0.0
    found = distances(tangents, where)
    rng = torch.Generator().manual_seed(1)
    drawn = torch.randn(tangents.shape, generator=rng, dtype=tangents.dtype)
    starts = (tangents, classical_scaling(found, tangents.size(-1)), drawn)
    return min(_smacof(found, start) for start in starts)


def tangent_stress(tangents: Tensor, where: Space) -> float:
    """Stress of the tangent vectors at the origin, at the scale that fits best; else as above."""
    if _in_one_place(tangents):
        return math.nan
    found, flat = distances(tangents, where), _flat_distances(tangents)
    return _stress(found, _scale(found, flat) * flat)


def classical_scaling(found: Tensor, width: int) -> Tensor:
    """Flat points whose inner products come closest to those that distances imply.

    Shapes: distances ``[N, N]`` -> ``[N, min(N, width)]``.
    Source: Torgerson (1952).
    """
    centred = torch.eye(len(found), dtype=found.dtype) - 1 / len(found)
    values, vectors = torch.linalg.eigh(-centred @ found.square() @ centred / 2)
    return vectors[:, -width:] * values[-width:].clamp_min(0).sqrt()


def _smacof(found: Tensor, points: Tensor) -> float:
    """The stress that Guttman's transforms reach from flat points ``[N, D]``; none raises it."""
    flat = _flat_distances(points)
    scale = _scale(found, flat)
    points, flat = scale * points, scale * flat
    stress = _stress(found, flat)
    for _ in range(SMACOF_STEPS):
        # points in one place stay together: the direction between them is rounding
        ratios = torch.where(flat > ONE_PLACE * flat.max(), found / flat, 0.0)
        points = (ratios.sum(1, keepdim=True) * points - ratios @ points) / len(points)
        flat = _flat_distances(points)
        before, stress = stress, _stress(found, flat)
        if before - stress <= SMACOF_TOLERANCE * before:
            break
    return stress


def _scale(found: Tensor, flat: Tensor) -> float:
    """The factor on distances that brings them closest to those found."""
    squares = float(flat.square().sum())
    return float((flat * found).sum()) / squares if squares > 0 else 1.0


def _stress(found: Tensor, flat: Tensor) -> float:
    return float(((flat - found).square().sum() / found.square().sum()).sqrt())


def _flat_distances(points: Tensor) -> Tensor:
    """By one product, up to 1e-8 of the largest length."""
    squares = points.square().sum(-1)
    found = squares[:, None] + squares - 2 * points @ points.T
    return found.clamp_min(0).fill_diagonal_(0).sqrt()


def tree_delta(tangents: Tensor, where: Space) -> float:
    """:func:`gromov_delta` of points by their tangent vectors at the origin, ``[N, D]``."""
    return gromov_delta(distances(tangents, where))


def gromov_delta(found: Tensor) -> float:
    """Gromov's delta of a metric, twice over the diameter: 0 for a tree, 1 at most.

    The exact four-point condition: with Gromov products ``(x|y)_w`` at every base point ``w``, the
    largest ``min((x|z)_w, (z|y)_w) - (x|y)_w``.

    Shapes: distances ``[N, N]``. Range: ``[0, 1]``; NaN for a diameter of 0, and for fewer than
    four points, of which every metric is a tree's.
    Source: Gromov (1987); relative to the diameter as Khrulkov et al. (2020), sec. 3.
    """
    diameter = float(found.max())
    if len(found) < 4 or not diameter > 0:
        return math.nan
    delta = 0.0
    for base in range(len(found)):
        from_base = found[base]
        products = (from_base[:, None] + from_base[None] - found) / 2
        # max over z of min((x|z), (z|y)): the product of matrices in (max, min)
        through = torch.minimum(products[:, :, None], products[None]).amax(1)
        delta = max(delta, float((through - products).max()))
    return 2 * delta / diameter


def rank_correlation(values: Tensor, others: Tensor) -> float:
    """Spearman's correlation; NaN where either does not vary.

    Values whose whole range is at most :data:`EQUAL` of the largest do not vary.
    """
    x, y = values.double().numpy(), others.double().numpy()
    if len(x) < 3 or any(np.ptp(z) <= EQUAL * np.abs(z).max() for z in (x, y)):
        return math.nan
    return float(spearmanr(x, y).statistic)


def over_samples(
    function: Callable[[Tensor], float], cloud: Tensor, *, size: int, samples: int, seed: int
) -> Estimate:
    """A function of random samples of a cloud ``[N, D]``, none with a point twice.

    The error is NaN where all points are in every sample; so is the mean where all points are in
    one place.
    """
    if _in_one_place(cloud):
        return Estimate(math.nan, math.nan)
    rng = torch.Generator().manual_seed(seed)
    if len(cloud) <= size:
        return Estimate(function(cloud), math.nan)
    found = [
        function(cloud[torch.randperm(len(cloud), generator=rng)[:size]]) for _ in range(samples)
    ]
    return Estimate(float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(samples)))


def _in_one_place(cloud: Tensor) -> bool:
    middle = cloud.mean(0)
    return float((cloud - middle).norm(dim=-1).max()) <= ONE_PLACE * float(middle.norm())
