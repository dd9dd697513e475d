#!/usr/bin/env bash
# Guess: all numbers of a Transformer's checkpoint are parameters or constants, and finite after a training that was.
# Seen: with sinusoidal positions the model keeps a buffer of one number, `_float_tensor`, that nothing ever sets:
#       checkpoints hold what the memory held before, NaN for example.
# Matters: equal trainings write unequal files; who looks for numbers that are not finite, or averages checkpoints,
#          stops at a sound one now and then.
# Versions: fairseq 0.12.2 (edited to import on Python 3.11), torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
fairseq_packages
"$python" - <<'PY'
import math

import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from finding import seen, versions

versions("fairseq", "torch")
NAME = "_float_tensor"


def made() -> float:
    state = SinusoidalPositionalEmbedding(8, 1, 20).state_dict()
    assert list(state) == [NAME], list(state)
    return float(state[NAME])


# memory that held NaN, of which half is free again
waste = [torch.full((1024,), math.nan) for _ in range(2000)]
kept = waste[::2]
del waste
numbers = [made() for _ in range(400)]
print(f"{NAME} of 400 models: {len(set(numbers))} different numbers, {sum(map(math.isnan, numbers))} of them NaN")
seen("equal models hold different numbers", len(set(numbers)) > 1, True)
model = SinusoidalPositionalEmbedding(8, 1, 20)
model._float_tensor.fill_(math.nan)
seen("positions do not depend on it", bool(model(torch.ones(2, 5).long() + 3).isfinite().all()), True)
PY
