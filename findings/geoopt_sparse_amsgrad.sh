#!/usr/bin/env bash
# Guess: SparseRiemannianAdam takes the steps of RiemannianAdam on rows that have a gradient in every batch, with amsgrad as without.
# Seen: without amsgrad it does. With it the running maximum is overwritten in every step by its own corrected root, so the next
# comparison is between a square and a root: with a gradient of .01 entries have moved by .0101 after ten steps of .01
# instead of by .1, nearly all of it in the first.
# Matters: where gradients are small, as they mostly are, embeddings hardly train, and the learning rate looks too low.
# Versions: geoopt 0.5.1, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH geoopt==0.5.1 scipy==1.17.1
"$python" - <<'PY'
import geoopt
import torch
from finding import seen, versions

versions("geoopt", "torch")


def moved(optimizer: type, sparse: bool, amsgrad: bool) -> float:
    """How far an entry of an ordinary (Euclidean) row moves in ten steps of rate .01."""
    table = torch.nn.Embedding(1, 2, sparse=sparse)
    start = table.weight.detach().clone()
    steps = optimizer(table.parameters(), lr=0.01, amsgrad=amsgrad)
    for _ in range(10):
        steps.zero_grad()
        (0.01 * table(torch.tensor([0]))).sum().backward()
        steps.step()
    return round((start - table.weight.detach()).max().item(), 4)


for amsgrad in (False, True):
    seen(f"torch's Adam, amsgrad={amsgrad}", moved(torch.optim.Adam, False, amsgrad), 0.1)
    seen(f"RiemannianAdam, amsgrad={amsgrad}", moved(geoopt.optim.RiemannianAdam, False, amsgrad), 0.1)
sparse = geoopt.optim.SparseRiemannianAdam
seen("SparseRiemannianAdam, amsgrad=False", moved(sparse, True, False), 0.1)
seen("SparseRiemannianAdam, amsgrad=True", moved(sparse, True, True), 0.0101)
PY
