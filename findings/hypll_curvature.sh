#!/usr/bin/env bash
# Guess: PoincareBall(Curvature(1.0)) is the unit ball, c = 1.
# Seen: the value goes through softplus: c = 1.3133. Points with norm .9 are outside this ball (radius .873) and
# are moved by project(); distances from the origin differ from other libraries' by 4 % at norm .5.
# Matters: points or results carried between hypll and other libraries disagree unless the constraining strategy
# is the identity or the value is log(e - 1) = 0.5413.
# Versions: hypll 0.1.1, torch 2.13.0; 2026-11-27. Source: this run and the docstring of Curvature.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import torch
from finding import seen, versions
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.tensors import ManifoldTensor

versions("hypll", "geoopt", "torch")


def ball(value: float) -> tuple[float, float, float]:
    """The curvature, the distance of (.5, 0) from the origin, and the norm of (.9, 0) after project()."""
    space = PoincareBall(Curvature(value))
    origin, inner, outer = (ManifoldTensor(torch.tensor([x, 0.0]), manifold=space) for x in (0.0, 0.5, 0.9))
    numbers = space.c(), space.dist(origin, inner), space.project(outer).tensor.norm()
    return tuple(round(number.item(), 4) for number in numbers)


seen("Curvature(1.0)", ball(1.0), (1.3133, 1.1378, 0.8691))
seen("Curvature(0.5413)", ball(0.541325), (1.0, 1.0986, 0.9))
seen("geoopt, c = 1", round(geoopt.PoincareBall(c=1.0).dist0(torch.tensor([0.5, 0.0])).item(), 4), 1.0986)
PY
