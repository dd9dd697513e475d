#!/usr/bin/env bash
# Guess: far out Lorentz.dist loses digits or gives inf or NaN, as any arcosh of a product of times does.
# Seen: it gives negative numbers. For radii 15 and 16 on one ray (true distance 1) float32 says -17.27, float64
# says so from 20 and 21 on: what is below 1 goes through log(x + sqrt(x^2 - 1)) with a floor inside.
# Matters: softmax(-distance) and losses that pull pairs together reward such pairs most; no NaN warns.
# Versions: geoopt 0.5.1, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 scipy==1.17.1
"$python" - <<'PY'
from math import cosh, sinh

import geoopt
import torch
from finding import seen, versions

versions("geoopt", "torch")


def distance(r: float, dtype: torch.dtype) -> float:
    x, y = (torch.tensor([cosh(t), sinh(t)], dtype=dtype) for t in (r, r + 1))
    return round(geoopt.Lorentz(k=torch.tensor(1.0, dtype=dtype)).dist(x, y).item(), 2)


seen("float32, from 5 to 6", distance(5, torch.float32), 1.0)
seen("float32, from 15 to 16", distance(15, torch.float32), -17.27)
seen("float64, from 10 to 11", distance(10, torch.float64), 1.0)
seen("float64, from 20 to 21", distance(20, torch.float64), -17.27)
PY
