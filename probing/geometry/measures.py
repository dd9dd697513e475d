"""How a cloud of points lies in its space: spread of radii, share of directions, Gromov's delta."""

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


def direction_share(tangents: Tensor, where: Space) -> float:
    """Share of the variance of pairwise distances that the directions of the points explain.

    Every point is moved along its ray to the mean radius; the share is the squared correlation of
    the distances before and after. It is 1 where all radii are equal, whatever they are.

    Shapes: ``[N, D]``. Range: ``[0, 1]``; 0 for points on one ray, NaN where all distances are
    equal or there is one pair at most.
    """
    return _explained(tangents, where, lambda radii: radii.mean().expand_as(radii))


def shuffled_share(tangents: Tensor, where: Space) -> float:
    """The share that the same points with their radii permuted explain, as a control.

    Shapes: ``[N, D]``. Range: ``[0, 1]``; 1 where all radii are equal, NaN as above.
    """
    order = torch.randperm(len(tangents), generator=torch.Generator().manual_seed(1))
    return _explained(tangents, where, lambda radii: radii[order])


def _explained(tangents: Tensor, where: Space, other: Callable[[Tensor], Tensor]) -> float:
    """Squared correlation of distances with those at other radii ``[N, 1]`` along the same rays."""
    if len(tangents) < 3:
        return math.nan
    radii = tangents.norm(dim=-1, keepdim=True)
    directions = tangents / radii.clamp_min(torch.finfo(tangents.dtype).tiny)
    pairs = tuple(torch.triu_indices(len(tangents), len(tangents), 1))
    found, moved = (
        distances(cloud, where)[pairs].numpy() for cloud in (tangents, directions * other(radii))
    )
    if not np.ptp(found) > EQUAL * found.max():
        return math.nan
    if not np.ptp(moved) > EQUAL * float(radii.mean()):
        return 0.0
    return float(np.corrcoef(found, moved)[0, 1] ** 2)


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

    The error is NaN for one sample, or where all points are in every sample; so is the mean where
    all points are in one place.
    """
    middle = cloud.mean(0)
    if float((cloud - middle).norm(dim=-1).max()) <= ONE_PLACE * float(middle.norm()):
        return Estimate(math.nan, math.nan)
    rng = torch.Generator().manual_seed(seed)
    if len(cloud) <= size:
        return Estimate(function(cloud), math.nan)
    found = [
        function(cloud[torch.randperm(len(cloud), generator=rng)[:size]]) for _ in range(samples)
    ]
    if samples == 1:
        return Estimate(found[0], math.nan)
    return Estimate(float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(samples)))
