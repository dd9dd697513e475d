#!/usr/bin/env bash
# Guess: a manifold works in the dtype of the points it gets, so float64 points give float64 results.
# Seen: the curvature stays in the default dtype. PoincareBall(c=0.1) is off in the ninth digit for float64
# points, and Lorentz() refuses them in its own check ("Double did not match Float") while dist takes them.
# manifold.double() rounds first; a float64 tensor as c or k is exact.
# Matters: comparisons in float64 (oracles, gradcheck) stop at eight digits and look like a wrong formula.
# Versions: geoopt 0.5.1, torch 2.13.0, mpmath 1.3.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import mpmath
import torch
from finding import seen, versions

versions("geoopt", "torch", "mpmath")
point = torch.tensor([0.5], dtype=torch.float64)
exact = float(2 / mpmath.sqrt(mpmath.mpf(0.1)) * mpmath.atanh(mpmath.sqrt(mpmath.mpf(0.1)) / 2))


def off(manifold) -> bool:
    error = abs(manifold.dist0(point).item() / exact - 1)
    print(f"relative error {error:.1e}")
    return error > 1e-10


exact_c = torch.tensor(0.1, dtype=torch.float64)
seen("c=0.1 is off", off(geoopt.PoincareBall(c=0.1)))
seen("c=0.1 and .double() is off", off(geoopt.PoincareBall(c=0.1).double()))
seen("a float64 tensor is off", off(geoopt.PoincareBall(c=exact_c)), False)
lorentz = geoopt.Lorentz()
point = lorentz.expmap0(torch.tensor([0.0, 1.0], dtype=torch.float64))
try:
    said = lorentz.check_point_on_manifold(point)
except RuntimeError as error:
    said = str(error)
seen("Lorentz() on its own float64 point", said, "Double did not match Float")
PY
