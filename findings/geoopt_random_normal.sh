#!/usr/bin/env bash
# Guess: random_normal(std=.01) puts points about .01 * sqrt(dimension) from the origin, and a larger std puts them further out.
# Seen: on the hyperboloid std has no effect: every direction is divided by its own length (with its time part, which is then dropped), so
# std .001, 1 and 100 give the same points, all within distance 1. mean acts on the direction alone. On the ball
# std acts, but is divided by the square root of the dimension: std .01 is distance .02 in 4 and in 256 dimensions.
# Matters: embeddings that are drawn with Lorentz().random_normal(std=.01), to start near the origin, start at radius 1.
# Versions: geoopt 0.5.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import torch
from finding import seen, versions

versions("geoopt", "torch")


def drawn(manifold, size: int, **normal) -> torch.Tensor:
    torch.manual_seed(0)
    return manifold.random_normal(1000, size, **normal).as_subclass(torch.Tensor)


def distance(manifold, points: torch.Tensor) -> float:
    return round(manifold.dist0(points).square().mean().sqrt().item(), 2)


lorentz, ball = geoopt.Lorentz(), geoopt.PoincareBall()
for std in (0.001, 1, 100):
    points = drawn(lorentz, 257, std=std)
    seen(f"hyperboloid, 256 dimensions, std {std}: distance", distance(lorentz, points), 1.0)
    seen("the points of std 1", torch.allclose(points, drawn(lorentz, 257), atol=1e-5))
seen("the farthest of a thousand in 4 dimensions, std 100", round(lorentz.dist0(drawn(lorentz, 5, std=100)).max().item(), 2), 1.0)
for size in (4, 256):
    seen(f"ball, {size} dimensions, std .01: distance", distance(ball, drawn(ball, size, std=0.01)), 0.02)
PY
