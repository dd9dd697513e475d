#!/usr/bin/env bash
# Guess: torch.onnx.export exports for inference, as its older form did by default (training=EVAL).
# Seen: the current exporter keeps the mode the module is in. A module in training mode gives a graph with Dropout
# switched on, and ONNX Runtime draws in every call.
# Matters: an export right after training, without eval(), runs and gives other outputs each time.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import numpy
import torch
from finding import seen, versions
from onnx_tools import export

versions("torch", "onnxruntime", "onnx", "onnxscript")
ones = torch.ones(1000)


def exported(mode: bool) -> tuple[list[str], bool, bool]:
    run, operators = export(torch.nn.Dropout(0.5).train(mode), (ones,))
    first, second = (run(ones.numpy())[0] for _ in range(2))
    return "Dropout" in operators, 300 < int((first == 0).sum()) < 700, numpy.array_equal(first, second)


seen("training: has Dropout, drops about half, repeats itself", exported(True), (True, True, False))
seen("eval: has Dropout, drops about half, repeats itself", exported(False), (False, False, True))
PY
