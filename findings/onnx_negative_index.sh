#!/usr/bin/env bash
# Guess: an exported embedding refuses the id -1 as torch does; ids that are out of range raise in both.
# Seen: Gather counts negative ids from the end: -1 is the last word's vector, down to minus the vocabulary's size.
# Ids past the end raise.
# Matters: -1 and -100 as "no token" or "ignore" reach the graph unnoticed and are translated as real words.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import numpy
import torch
from finding import seen, versions
from onnx_tools import export

versions("torch", "onnxruntime", "onnx", "onnxscript")
embedding = torch.nn.Embedding(10, 2)
run, operators = export(embedding, (torch.zeros(1, 3, dtype=torch.long),))


def row(index: int, of) -> str:
    try:
        vector = of(index)
    except Exception as error:
        return type(error).__name__
    return f"row {[numpy.allclose(vector, known) for known in embedding.weight.tolist()].index(True)}"


for index, in_torch, in_runtime in ((9, "row 9", "row 9"), (-1, "IndexError", "row 9"), (-10, "IndexError", "row 0")):
    seen(f"{index}: torch", row(index, lambda i: embedding(torch.tensor([[i]]))[0, 0].tolist()), in_torch)
    seen(f"{index}: ONNX Runtime", row(index, lambda i: run(numpy.array([[i] * 3]))[0][0, 0]), in_runtime)
PY
