#!/usr/bin/env bash
# Guess: lorentz_to_poincare(x, k) gives the points of the ball of the same curvature, PoincareBall(c=1/k), at the same distances.
# Seen: it gives points of the unit ball for every k. In PoincareBall(c=1/k) distances are about half for k = 4, and for k = 1/4 the points
# lie outside the ball. They are right times sqrt(k), or as sqrt(k) times the unit ball's distances. Back through
# poincare_to_lorentz all is as before, so a round trip shows nothing.
# Versions: geoopt 0.5.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import torch
from finding import seen, versions
from geoopt.manifolds.lorentz.math import lorentz_to_poincare, poincare_to_lorentz

versions("geoopt", "torch")
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
for k, same in ((1.0, True), (4.0, False), (0.25, False)):
    lorentz, ball, unit = geoopt.Lorentz(k=k), geoopt.PoincareBall(c=1 / k), geoopt.PoincareBall()
    x, y = lorentz.random_normal(100, 4), lorentz.random_normal(100, 4)
    x, y = x.as_subclass(torch.Tensor), y.as_subclass(torch.Tensor)
    a, b = (lorentz_to_poincare(points, k=lorentz.k) for points in (x, y))
    distance = lorentz.dist(x, y)
    seen(f"k = {k}: round trip", torch.allclose(poincare_to_lorentz(a, k=lorentz.k), x))
    seen(f"k = {k}: right in PoincareBall(c=1/k)", torch.allclose(ball.dist(a, b), distance), same)
    seen(f"k = {k}: right there times sqrt(k)", torch.allclose(ball.dist(a * k**0.5, b * k**0.5), distance))
    seen(f"k = {k}: right as sqrt(k) * the unit ball's distance", torch.allclose(k**0.5 * unit.dist(a, b), distance))
    seen(f"k = {k}: all inside the ball of c = 1/k", bool((a.norm(dim=-1) < k**0.5).all()), k != 0.25)
PY
