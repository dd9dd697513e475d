#!/usr/bin/env bash
# Guess: torch.log1p and torch.expm1 keep their point after export: all digits for small arguments.
# Seen: ONNX has neither operator; the exporter writes Log(1 + x) and Exp(x) - 1. At 1e-5 a tenth of a percent is
# lost in float32, below 6e-8 everything. asinh keeps its digits.
# Matters: distances and softplus near 0 written with log1p are exact in torch and noise in the exported model.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import torch
from finding import seen, versions
from onnx_tools import export

versions("torch", "onnxruntime", "onnx", "onnxscript")
x = torch.tensor([1e-5, 1e-8])


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


for name, operators, lost in (
    ("log1p", ["Add", "Log"], True),
    ("expm1", ["Exp", "Sub"], True),
    ("asinh", ["Asinh"], False),
):
    run, written = export(Function(getattr(torch, name)), (x,))
    errors = [f"{abs(got / exact - 1):.0e}" for got, exact in zip(run(x.numpy())[0], x.tolist(), strict=True)]
    print(f"{name}: relative errors of ONNX Runtime at 1e-5 and 1e-8: {errors}")
    seen(f"{name}: operators", written, operators)
    seen(f"{name}: digits are lost", float(errors[0]) > 1e-4 and float(errors[1]) == 1, lost)
PY
