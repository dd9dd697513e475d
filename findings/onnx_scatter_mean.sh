#!/usr/bin/env bash
# Guess: scatter_reduce with reduce="mean" gives torch's means after export, or the exporter refuses it, as ONNX has no such reduction.
# Seen: it exports a ScatterElements without any reduction: each place holds the last number that was written to it, whatever include_self
# says. sum, amax and amin come out right.
# Matters: subword vectors averaged per word, or nodes per graph, become the last subword's or node's vector, without an error.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import torch
from finding import seen, versions
from onnx_tools import export

versions("torch", "onnxruntime", "onnx", "onnxscript")
subwords = torch.tensor([1.0, 5.0, 2.0, 3.0, 7.0])
word = torch.tensor([0, 0, 1, 1, 1])


class Pool(torch.nn.Module):
    def __init__(self, how: str, include_self: bool):
        super().__init__()
        self.how, self.include_self = how, include_self

    def forward(self, subwords):
        return torch.zeros(2).scatter_reduce(0, word, subwords, self.how, include_self=self.include_self)


for how, include_self, expected, exported in (
    ("mean", False, [3.0, 4.0], [5.0, 7.0]),
    ("mean", True, [2.0, 3.0], [5.0, 7.0]),
    ("sum", False, [6.0, 12.0], [6.0, 12.0]),
    ("amax", False, [5.0, 7.0], [5.0, 7.0]),
    ("amin", False, [1.0, 2.0], [1.0, 2.0]),
):
    model = Pool(how, include_self)
    run, operators = export(model, (subwords,))
    name = f"{how}, include_self={include_self}"
    seen(f"{name}: torch", model(subwords).tolist(), expected)
    seen(f"{name}: ONNX Runtime", run(subwords.numpy())[0].tolist(), exported)
PY
