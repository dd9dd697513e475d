#!/usr/bin/env bash
# Guess: a model that branches on the length can't be exported with a dynamic length; torch.export says so.
# Seen: torch.export does say so (or keeps a guard that its module checks). torch.onnx.export takes the same model
# and the same named dimensions, keeps the example's branch and no guard: ONNX Runtime then computes the
# short branch for long inputs, with a graph that declares any length.
# Matters: chunked attention, tables of positions, "small batch" paths: the export is wrong beyond the example's side.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import numpy
import torch
from finding import seen, versions
from onnx_tools import export
from torch.export import Dim

versions("torch", "onnxruntime", "onnx", "onnxscript")


class Branch(torch.nn.Module):
    def forward(self, x):
        return x * 100 if x.shape[1] > 16 else x + 1


class Product(torch.nn.Module):
    def forward(self, x):
        return x * 100 if x.shape[0] * x.shape[1] > 1000 else x + 1


example, long = torch.zeros(2, 5), torch.zeros(60, 20)
dimensions = ({0: Dim("batch"), 1: Dim("length")},)


def exported(model) -> str:
    try:
        torch.export.export(model, (example,), dynamic_shapes=dimensions).module()(long)
    except Exception as error:
        return type(error).__name__
    return "accepted"


for model, said in ((Branch(), "UserError"), (Product(), "AssertionError")):
    name = type(model).__name__
    seen(f"{name}: torch.export, then a long input", exported(model), said)
    run, operators = export(model, (example,), dimensions)
    seen(f"{name}: torch, long input", model(long)[0, 0].item(), 0.0)
    seen(f"{name}: ONNX Runtime, long input", float(run(long.numpy())[0][0, 0]), 1.0)
    seen(f"{name}: operators", operators, ["Add"])
PY
