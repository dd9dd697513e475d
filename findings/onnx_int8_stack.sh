#!/usr/bin/env bash
# Expected: quantize_dynamic with a scale per channel handles a stack of matrices (one matrix per head) as it does one matrix.
# Seen: it rounds the stack and gives it one scale per column, and ONNX Runtime loads the graph; the first run raises
# "b zero point is not valid". With one scale for the whole tensor, and for a single matrix with either, the graph runs.
# Matters: quantization and loading both succeed, so only the first sentence shows that the model cannot be used.
# Versions: onnxruntime 1.32.0, onnx 1.23.2; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages onnx==1.23.2 onnxruntime==1.32.0
"$python" - <<'PY'
import logging
import tempfile

import numpy as np
import onnx
import onnxruntime
from finding import seen, versions
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.WARNING)
versions("onnxruntime", "onnx")
x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def outcome(shape: tuple[int, ...], per_channel: bool) -> str:
    weight = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    tensor, info = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [tensor("x", info, ["a", "b", 4])],
        [tensor("y", info, ["a", "b", 5])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/whole.onnx")
        quantize_dynamic(f"{folder}/whole.onnx", f"{folder}/small.onnx", per_channel=per_channel)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(f"{folder}/small.onnx", options, providers=["CPUExecutionProvider"])
    try:
        found = session.run(None, {"x": x})[0]
    except Exception as error:
        return "b zero point is not valid" if "b zero point is not valid" in str(error) else str(error)
    return "runs" if np.abs(found - x @ weight).max() < 0.2 else "wrong"


for name, shape in (("one matrix", (4, 5)), ("a stack of two", (2, 4, 5))):
    seen(f"{name}, one scale", outcome(shape, per_channel=False), "runs")
seen("one matrix, a scale per column", outcome((4, 5), per_channel=True), "runs")
seen("a stack of two, a scale per column", outcome((2, 4, 5), per_channel=True), "b zero point is not valid")
PY
