#!/usr/bin/env bash
# Guess: in eval mode HBatchNorm normalizes with running statistics, as torch's BatchNorm does, so a row doesn't depend on its batch.
# Seen: it has none. In eval mode it takes mean and variance of the batch at hand, and a batch of one row, whose variance is 0, comes out as
# the layer's bias (but for rounding), whatever the row was.
# Matters: test results depend on the batch size, and with batches of one all inputs look the same to the layers above.
# Versions: hypll 0.1.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 hypll==0.1.1 scipy==1.17.1
"$python" - <<'PY'
import torch
from finding import seen, versions
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.nn import HBatchNorm
from hypll.tensors import TangentTensor

versions("hypll", "torch")
torch.manual_seed(0)
ball = PoincareBall(Curvature(1.0))
rows = torch.randn(8, 4) / 2


def points(rows: torch.Tensor):
    return ball.expmap(TangentTensor(rows, manifold=ball))


layer, flat = HBatchNorm(4, manifold=ball), torch.nn.BatchNorm1d(4)
for _ in range(100):
    layer(points(rows))
    flat(rows)
layer.eval()
flat.eval()
whole = layer(points(rows)).tensor
seen("buffers of HBatchNorm", [name for name, _ in layer.named_buffers()], [])
seen("its first two rows alone are as in the batch of eight", torch.allclose(layer(points(rows[:2])).tensor, whole[:2], atol=0.1), False)
alone = [layer(points(row[None])).tensor for row in rows]
seen("each row alone comes out at the bias, here the origin (to .01)", torch.cat(alone).abs().max().item() < 0.01)
seen("in the batch some come out further than .1 from it", whole.abs().max().item() > 0.1)
seen("torch's BatchNorm: a row alone is as in the batch", torch.allclose(flat(rows[:1]), flat(rows)[:1], atol=1e-5))
PY
