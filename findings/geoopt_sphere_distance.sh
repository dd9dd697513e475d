#!/usr/bin/env bash
# Guess: Sphere.dist of a point to itself is 0 and its gradient there NaN, as that of any arccos of a product; near points keep some digits.
# Seen: no distance is below .01414 in float32 and .00045 in float64, nor above pi minus that, and there the gradient is 0: the product is
# clamped to 1 - 1e-4 in float32 and 1 - 1e-7 in float64.
# Matters: in float32 all points within .8 degrees are equally far apart, a point from itself too, and a loss of such distances stands still.
# Versions: geoopt 0.5.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 scipy==1.17.1
"$python" - <<'PY'
import math

import geoopt
import torch
from finding import seen, versions

versions("geoopt", "torch")
sphere = geoopt.Sphere()


def distance(angle: float, dtype: torch.dtype) -> tuple[float, bool]:
    """The distance of two points at this angle, and whether its gradient is zero."""
    one = torch.tensor([1.0, 0.0], dtype=dtype)
    other = torch.tensor([math.cos(angle), math.sin(angle)], dtype=dtype, requires_grad=True)
    found = sphere.dist(one, other)
    found.backward()
    return round(found.item(), 6), not other.grad.any()


for angle, single, double in (
    (0.0, (0.014143, True), (0.000447, True)),
    (0.0001, (0.014143, True), (0.000447, True)),
    (0.01, (0.014143, True), (0.01, False)),
    (0.1, (0.1, False), (0.1, False)),
    (math.pi, (3.127449, True), (3.141145, True)),
):
    seen(f"angle {angle:.4f}, float32: distance, gradient 0", distance(angle, torch.float32), single)
    seen(f"angle {angle:.4f}, float64: distance, gradient 0", distance(angle, torch.float64), double)
PY
