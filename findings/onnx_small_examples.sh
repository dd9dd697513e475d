#!/usr/bin/env bash
# Guess: an example with batch 1 or an empty state fixes that size: torch.export refuses dynamic dimensions
# for it, and so does torch.onnx.export, which is built on it.
# Seen: torch.export refuses both ("specialized"), Dim.AUTO fixes them in silence, and torch.onnx.export takes them
# and makes a general graph: the step exported with an empty state of one sentence runs for 3 sentences and 4 steps.
# Matters: the usual advice (examples of batch 2, length 3) is needed for torch.export alone.
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


class Step(torch.nn.Module):
    def forward(self, x, past):
        state = torch.cat([past, x], 1)
        weights = torch.softmax(x @ state.transpose(1, 2), -1)
        return weights @ state, state


def strict(arguments, batch, length) -> str:
    try:
        program = torch.export.export(Step(), arguments, dynamic_shapes=({0: batch}, {0: batch, 1: length}))
        program.module()(torch.zeros(3, 1, 8), torch.zeros(3, 4, 8))
    except Exception as error:
        return type(error).__name__
    return "general"


for name, arguments in (
    ("batch 1", (torch.zeros(1, 1, 8), torch.zeros(1, 3, 8))),
    ("empty state", (torch.zeros(2, 1, 8), torch.zeros(2, 0, 8))),
):
    batch, length = Dim("batch"), Dim("length")
    seen(f"{name}: torch.export", strict(arguments, batch, length), "UserError")
    seen(f"{name}: torch.export, Dim.AUTO", strict(arguments, Dim.AUTO, Dim.AUTO), "AssertionError")
    run, _ = export(Step(), arguments, ({0: batch}, {0: batch, 1: length}))
    x, past = torch.randn(3, 1, 8), torch.randn(3, 4, 8)
    same = all(numpy.allclose(a, b, atol=1e-6) for a, b in zip(run(x.numpy(), past.numpy()), Step()(x, past), strict=True))
    seen(f"{name}: the ONNX graph is right for 3 sentences and 4 steps", same)
PY
