#!/usr/bin/env bash
# Guess: on ordinary parameters RiemannianAdam is Adam: every entry has a second moment of its own (so it is in geoopt).
# Seen: hypll's shares one among all entries of the last dimension. With gradients 1, 10 and 100 in a row Adam moves each entry by
# the rate; hypll moves them by .01, .1 and 1 times that.
# Matters: biases, layer norms and Euclidean layers of a mixed model are trained by something close to normalized SGD, with steps
# that shrink with the width: a row of 256 equal gradients moves by 1/16 of the rate.
# Versions: hypll 0.1.1, geoopt 0.5.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import hypll.optim
import torch
from finding import seen, versions

versions("hypll", "geoopt", "torch")


def moved(optimizer: type, gradient: torch.Tensor) -> list[float]:
    weight = torch.nn.Parameter(torch.zeros_like(gradient))
    run = optimizer([weight], lr=1.0)
    (weight * gradient).sum().backward()
    run.step()
    return [round(-entry, 3) for entry in weight.tolist()]


for name, optimizer, expected in (
    ("torch, Adam", torch.optim.Adam, [1, 1, 1]),
    ("geoopt", geoopt.optim.RiemannianAdam, [1, 1, 1]),
    ("hypll", hypll.optim.RiemannianAdam, [0.01, 0.099, 0.995]),
):
    seen(f"{name}: gradients 1, 10, 100", moved(optimizer, torch.tensor([1.0, 10.0, 100.0])), expected)
seen("hypll: 256 equal gradients", set(moved(hypll.optim.RiemannianAdam, torch.ones(256))), {0.062})
PY
