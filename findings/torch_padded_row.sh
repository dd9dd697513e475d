#!/usr/bin/env bash
# Guess: a row whose keys are all padding gives NaN in nn.MultiheadAttention, always (softmax of nothing but -inf),
# or zeros always (since scaled_dot_product_attention returns zeros there).
# Seen: both, by flags that have nothing to do with masks: NaN with need_weights=True, zeros with
# need_weights=False, and NaN again with need_weights=False under no_grad in eval (the fused path).
# Matters: a model that trains on batches with empty rows gives NaN as soon as it is evaluated.
# Versions: torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH
"$python" - <<'PY'
import torch
from finding import seen, versions

versions("torch")
torch.manual_seed(0)
attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
x, padding = torch.randn(2, 3, 4), torch.tensor([[False] * 3, [True] * 3])


def row(need_weights: bool) -> str:
    out = attention(x, x, x, key_padding_mask=padding, need_weights=need_weights)[0][1]
    return "NaN" if out.isnan().all() else "zeros" if not out.any() else "numbers"


seen("with gradients, weights needed", row(True), "NaN")
seen("with gradients, weights not needed", row(False), "zeros")
with torch.no_grad():
    seen("no gradients, weights needed", row(True), "NaN")
    seen("no gradients, weights not needed", row(False), "NaN")
PY
