#!/usr/bin/env bash
# Guess: torch's scaled_dot_product_attention gives zeros for a row whose keys are all masked, and its export does.
# Seen: with a bool mask ONNX Runtime gives the mean of the masked values (the exporter puts a large negative
# number for False, so the softmax is flat); with the same mask as 0 and -inf it gives NaN. torch gives zeros for both.
# Matters: padded rows of a batch stay finite and look like translations of something; sums over rows are wrong.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import torch
from finding import seen, versions
from onnx_tools import export

versions("torch", "onnxruntime", "onnx", "onnxscript")
torch.manual_seed(0)
query, key = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4)
allowed = torch.tensor([[True, True, False], [False, False, False]])


class Attention(torch.nn.Module):
    def forward(self, query, key, mask):
        return torch.nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=mask)


def kind(row: torch.Tensor) -> str:
    if row.isnan().all():
        return "NaN"
    return "zeros" if not row.any() else "the mean of the values" if torch.allclose(row, key[0, 0].mean(0)) else "numbers"


for name, mask, expected in (
    ("bool", allowed, "the mean of the values"),
    ("0 and -inf", torch.where(allowed, 0.0, -torch.inf), "NaN"),
):
    arguments = query, key, mask
    run, _ = export(Attention(), arguments)
    seen(f"{name} mask, torch", kind(Attention()(*arguments)[0, 0, 1]), "zeros")
    seen(f"{name} mask, ONNX Runtime", kind(torch.tensor(run(*(x.numpy() for x in arguments))[0])[0, 0, 1]), expected)
PY
