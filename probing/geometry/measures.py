"""Measure how a cloud of points lies in its space: how far it is from flat and from a tree."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import spearmanr  # type: ignore[import-untyped]
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space

EQUAL = 1e-4
"""Values whose range is at most this share of the largest count as equal: float32 resolves the
times of points far from the origin no better."""
ONE_PLACE = 1e-5
"""Tangents that differ from their mean by at most this share of its length count as one point:
such differences are rounding of float32."""
SMACOF_STEPS, SMACOF_TOLERANCE = 300, 1e-4
"""Most steps from each start; a step that lowers the stress by at most this share is the last."""


@dataclass(frozen=True)
class Estimate:
    """A mean over random samples and its standard error."""

    mean: float
    error: float


def distances(tangents: Tensor, where: Space) -> Tensor:
    """Return geodesic distances between all pairs of points, given as tangents at the origin.

    Shapes: ``[N, D]`` -> ``[N, N]``, in units of curvature -1; Euclidean in a flat space.
    """
    if where.kind == "euclidean":
        return torch.cdist(tangents, tangents, compute_mode="donot_use_mm_for_euclid_dist")
    points = lorentz.exp_origin(tangents)
    return lorentz.distance(points[:, None], points[None])


def flat_stress(tangents: Tensor, where: Space) -> float:
    """Return the stress of the best embedding in a flat space of equally many dimensions.

    Stress is the square root of the summed squared differences between both spaces' distances over
    the summed squares of the original ones: 0 if a flat space holds all distances, .02 if it misses
    them by 2 %. SMACOF minimizes it from three starts: the tangents, classical scaling and random
    vectors. It is 0 for points of a flat space.

    Shapes: ``[N, D]``, tangent vectors at the origin. Range: ``[0, 1]``; NaN for points in one
    place. More points never have less stress; up to ``D + 1`` points often have none.
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
    """Return the stress of the tangents at their best scale; else as :func:`flat_stress`."""
    if _in_one_place(tangents):
        return math.nan
    found, flat = distances(tangents, where), _flat_distances(tangents)
    return _stress(found, _scale(found, flat) * flat)


def classical_scaling(found: Tensor, width: int) -> Tensor:
    """Return the flat points whose inner products come closest to those that distances imply.

    Shapes: distances ``[N, N]`` -> ``[N, min(N, width)]``.
    Source: Torgerson (1952).
    """
    centred = torch.eye(len(found), dtype=found.dtype) - 1 / len(found)
    values, vectors = torch.linalg.eigh(-centred @ found.square() @ centred / 2)
    return vectors[:, -width:] * values[-width:].clamp_min(0).sqrt()


def _smacof(found: Tensor, points: Tensor) -> float:
    """Lower the stress of flat points ``[N, D]`` by Guttman transforms, and return it."""
    flat = _flat_distances(points)
    scale = _scale(found, flat)
    points, flat = scale * points, scale * flat
    stress = _stress(found, flat)
    for _ in range(SMACOF_STEPS):
        # points in one place stay together: the direction between them is only rounding
        ratios = torch.where(flat > ONE_PLACE * flat.max(), found / flat, 0.0)
        points = (ratios.sum(1, keepdim=True) * points - ratios @ points) / len(points)
        flat = _flat_distances(points)
        previous, stress = stress, _stress(found, flat)
        if previous - stress <= SMACOF_TOLERANCE * previous:
            break
    return stress


def _scale(found: Tensor, flat: Tensor) -> float:
    """Return the factor on the flat distances that brings them closest to those found."""
    squares = float(flat.square().sum())
    return float((flat * found).sum()) / squares if squares > 0 else 1.0


def _stress(found: Tensor, flat: Tensor) -> float:
    return float(((flat - found).square().sum() / found.square().sum()).sqrt())


def _flat_distances(points: Tensor) -> Tensor:
    """Return Euclidean distances by one matrix product, exact up to 1e-8 of the largest length."""
    squares = points.square().sum(-1)
    found = squares[:, None] + squares - 2 * points @ points.T
    return found.clamp_min(0).fill_diagonal_(0).sqrt()


def gromov_delta(found: Tensor) -> float:
    """Return twice Gromov's delta of a metric over its diameter: 0 for a tree, 1 at most.

    Delta is exact, by the four-point condition: the largest ``min((x|z)_w, (z|y)_w) - (x|y)_w`` of
    Gromov products at all base points ``w``.

    Shapes: distances ``[N, N]``. Range: ``[0, 1]``; NaN for a diameter of 0 and for fewer than
    four points, whose metric is always a tree's.
    Source: Gromov (1987); relative to the diameter as Khrulkov et al. (2020), sec. 3.
    """
    diameter = float(found.max())
    if len(found) < 4 or not diameter > 0:
        return math.nan
    delta = 0.0
    for base in range(len(found)):
        from_base = found[base]
        products = (from_base[:, None] + from_base[None] - found) / 2
        # max over z of min((x|z), (z|y)): a matrix product in the (max, min) semiring
        through = torch.minimum(products[:, :, None], products[None]).amax(1)
        delta = max(delta, float((through - products).max()))
    return 2 * delta / diameter


def rank_correlation(values: Tensor, others: Tensor) -> float:
    """Return Spearman's correlation; NaN if either variable is constant.

    Values whose range is at most :data:`EQUAL` of the largest absolute value count as constant.
    """
    x, y = values.double().numpy(), others.double().numpy()
    if len(x) < 3 or any(np.ptp(z) <= EQUAL * np.abs(z).max() for z in (x, y)):
        return math.nan
    return float(spearmanr(x, y).statistic)


def over_samples(
    function: Callable[[Tensor], float], cloud: Tensor, *, size: int, samples: int, seed: int
) -> Estimate:
    """Average a function over random samples of a cloud ``[N, D]``, drawn without replacement.

    The error is NaN if a sample holds all points; mean and error are NaN if all points are in one
    place.
    """
    if _in_one_place(cloud):
        return Estimate(math.nan, math.nan)
    rng = torch.Generator().manual_seed(seed)
    if len(cloud) <= size:
        return Estimate(function(cloud), math.nan)
    drawn = (torch.randperm(len(cloud), generator=rng)[:size] for _ in range(samples))
    found = [function(cloud[places]) for places in drawn]
    return Estimate(float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(samples)))


def _in_one_place(cloud: Tensor) -> bool:
    middle = cloud.mean(0)
    return float((cloud - middle).norm(dim=-1).max()) <= ONE_PLACE * float(middle.norm())
