#!/usr/bin/env bash
# Guess: topk(1) names the entry that argmax names; where scores tie, both take the first.
# Seen: argmax takes the first, topk any: of eight entries with the maximum at 1, 2, 3, 5, 6, 7 it names 6.
# ONNX Runtime's TopK takes the first.
# Matters: beam search of width 1 by topk and greedy search by argmax differ where two words tie, which bfloat16
# logits of some thousand words often do; so do a torch model and its export.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import onnxruntime
import torch
from finding import seen, versions
from onnx import TensorProto, helper

versions("torch", "onnxruntime", "onnx")
scores = torch.tensor([1.0, 3, 3, 3, 2, 3, 3, 3])
node = helper.make_node("TopK", ["x", "k"], ["values", "indices"])
graph = helper.make_graph(
    [node], "top", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])],
    [helper.make_tensor_value_info("indices", TensorProto.INT64, [1])],
    [helper.make_tensor("k", TensorProto.INT64, [1], [1])],
)  # fmt: skip
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
seen("argmax", scores.argmax().item(), 1)
seen("topk(1) is another one", scores.topk(1).indices.item() != 1)
seen("TopK of ONNX Runtime", session.run(None, {"x": scores.numpy()})[0].tolist(), [1])
torch.manual_seed(0)
logits = torch.randn(64, 8000).mul(2).bfloat16()
seen("rows of bfloat16 logits with two maxima", int(((logits == logits.amax(-1, keepdim=True)).sum(-1) > 1).sum()) > 0)
PY
