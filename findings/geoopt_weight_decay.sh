#!/usr/bin/env bash
# Expected: weight decay pulls a point towards the origin, on the hyperboloid as on the ball, about as hard wherever it is.
# Seen: one step of rate .1 and decay .01 moves a point of the hyperboloid by .001 * sinh(2 * radius): .004 at radius 1, .2 at 3, and from 5
# across the origin to the other side, to radius 6. On the ball it moves by less the further out it is: .0002, .00008 and .00001.
# Matters: on the hyperboloid an ordinary decay throws far points further out with every step, and on the ball it leaves them alone; neither
# bounds the radius.
# Versions: geoopt 0.5.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 scipy==1.17.1
"$python" - <<'PY'
import math

import geoopt
import torch
from finding import seen, versions

versions("geoopt", "torch")
hyperboloid, ball = geoopt.Lorentz(), geoopt.PoincareBall()
torch.set_default_dtype(torch.float64)


def after_one_step(space: geoopt.Manifold, point: torch.Tensor) -> tuple[float, bool]:
    """The radius after a step whose gradient is zero, and whether the point is on the same side."""
    parameter = geoopt.ManifoldParameter(point, manifold=space)
    parameter.grad = torch.zeros_like(parameter)
    side = point[-1].item()
    geoopt.optim.RiemannianSGD([parameter], lr=0.1, weight_decay=0.01).step()
    return space.dist0(parameter.detach()).item(), parameter[-1].item() * side > 0


for radius, on_hyperboloid, on_ball in ((1, 0.9964, 0.99982), (3, 2.7983, 2.99992), (5, 6.0132, 4.99999)):
    point = torch.tensor([math.cosh(radius), math.sinh(radius)])
    moved, same_side = after_one_step(hyperboloid, point)
    seen(f"hyperboloid, radius {radius}: after one step, same side", (round(moved, 4), same_side), (on_hyperboloid, radius < 5))
    way = radius - moved if same_side else radius + moved
    seen(f"hyperboloid, radius {radius}: way / (.001 * sinh(2 * radius))", round(way / (0.001 * math.sinh(2 * radius)), 3), 1.0)
    moved, same_side = after_one_step(ball, torch.tensor([math.tanh(radius / 2)]))
    seen(f"ball, radius {radius}: after one step, same side", (round(moved, 5), same_side), (on_ball, True))
PY
