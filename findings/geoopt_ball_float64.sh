#!/usr/bin/env bash
# Guess: float64 doubles the reach of the ball: distances up to about 36 instead of 17.
# Seen: PoincareBall.dist ends at 16.81 in float64 and at 16.64 in float32, as both clamp the argument of artanh
# at 1 - 1e-7. The same two points in hypll, which has no such clamp, are at their true distance.
# Matters: changing to float64 to get rid of saturated distances does not.
# Versions: geoopt 0.5.1, hypll 0.1.1, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
from math import tanh

import geoopt
import torch
from finding import seen, versions
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.tensors import ManifoldTensor

versions("geoopt", "hypll", "torch")


def distance(dtype: torch.dtype) -> float:
    x = torch.tensor([tanh(7.5), 0.0], dtype=dtype)
    return round(geoopt.PoincareBall(c=torch.tensor(1.0, dtype=dtype)).dist(x, -x).item(), 2)


seen("geoopt, 15 to -15 (30), float32", distance(torch.float32), 16.64)
seen("geoopt, 15 to -15 (30), float64", distance(torch.float64), 16.81)
space = PoincareBall(Curvature(1.0, constraining_strategy=lambda value: value.double()))
x = torch.tensor([tanh(7.5), 0.0], dtype=torch.float64)
seen("hypll, float64", round(space.dist(ManifoldTensor(x, manifold=space), ManifoldTensor(-x, manifold=space)).item(), 1), 30.0)
PY
