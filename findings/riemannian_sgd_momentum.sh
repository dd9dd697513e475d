#!/usr/bin/env bash
# Guess: on ordinary parameters a Riemannian SGD is SGD, with momentum too; on the ball its first step is rate * gradient long.
# Seen: in geoopt and hypll the first gradient goes into the buffer twice, so the first step is 1 + momentum as long, 1.9 at momentum .9.
# On geoopt's ball the first of the two is the Euclidean gradient: the step is 1 + momentum * factor^2 as long, with the conformal
# factor 2 / (1 - norm^2): 101 times at norm .9, 9092 times at norm .99. On hypll's ball the buffer never changes afterwards: where
# no gradient follows, every later step is still momentum * the first gradient. Without momentum all is as guessed.
# Matters: geoopt throws points near the boundary, where trees have their leaves, across the ball in the first step; in hypll
# the first batch pulls throughout the training, and no later one gathers momentum.
# Versions: geoopt 0.5.1, hypll 0.1.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import hypll.optim
import torch
from finding import seen, versions
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.tensors import ManifoldParameter

versions("geoopt", "hypll", "torch")
torch.set_default_dtype(torch.float64)
OPTIMIZERS = {"geoopt": geoopt.optim.RiemannianSGD, "hypll": hypll.optim.RiemannianSGD, "torch": torch.optim.SGD}
BALLS = {"geoopt": geoopt.PoincareBallExact(), "hypll": PoincareBall(Curvature(1.0, constraining_strategy=lambda c: c))}
RATE = 1e-5


def plain(name: str, **options) -> list[float]:
    """Lengths of two steps of rate 1 against a gradient that is always 1."""
    weight = torch.nn.Parameter(torch.zeros(1))
    run = OPTIMIZERS[name]([weight], lr=1.0, **options)
    lengths = []
    for _ in range(2):
        before = weight.item()
        run.zero_grad()
        weight.sum().backward()
        run.step()
        lengths.append(round(before - weight.item(), 3))
    return lengths


def on_ball(name: str, norm: float, momentum: float, steps: int = 1) -> list[float]:
    """Lengths of steps, over the rate, whose first gradient has Riemannian length 1; all others are 0."""
    start = torch.tensor([[norm, 0.0]])
    if name == "geoopt":
        point = geoopt.ManifoldParameter(start, manifold=BALLS[name])
    else:
        point = ManifoldParameter(start, manifold=BALLS[name], man_dim=-1)
    values = point.data if name == "geoopt" else point.tensor.data
    run = OPTIMIZERS[name]([point], lr=RATE, momentum=momentum)
    lengths = []
    for i in range(steps):
        before = values.clone()
        run.zero_grad()
        inside = point if name == "geoopt" else point.tensor
        (2 * inside.norm(dim=-1).atanh() * (i == 0)).sum().backward()
        run.step()
        lengths.append(round(2 * abs(before.norm().atanh() - values.norm().atanh()).item() / RATE, 2))
    return lengths


for name in ("geoopt", "hypll", "torch"):
    seen(f"{name}, an ordinary parameter, no momentum", plain(name), [1, 1])
    seen(f"{name}, an ordinary parameter, momentum .9", plain(name, momentum=0.9), [1, 1.9] if name == "torch" else [1.9, 2.71])
for norm, first in ((0.5, 7.4), (0.9, 100.72), (0.99, 9092)):
    for momentum, expected in ((0, (1, 1)), (0.9, (first, 1.9))):
        one, other = on_ball("geoopt", norm, momentum)[0], on_ball("hypll", norm, momentum)[0]
        one = one if norm < 0.99 else round(one)
        seen(f"norm {norm}, momentum {momentum}, first step over rate * gradient: geoopt, hypll", (one, other), expected)
seen("norm .5, momentum .9, no gradient after the first step: geoopt", on_ball("geoopt", 0.5, 0.9, 5), [7.4, 6.66, 5.99, 5.39, 4.86])
seen("norm .5, momentum .9, no gradient after the first step: hypll", on_ball("hypll", 0.5, 0.9, 5), [1.9, 0.9, 0.9, 0.9, 0.9])
PY
