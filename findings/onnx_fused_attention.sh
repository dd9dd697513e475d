#!/usr/bin/env bash
# Guess: onnxruntime.transformers' optimizer fuses what it recognizes as BERT's attention and leaves alone what differs, a scale
# other than the square root of a head's width for instance.
# Seen: in a graph of torch's older exporter it fuses the attention with any divisor and forgets it: the new node divides by the square
# root of the head's width. The newer exporter's graph, and model_type "bart", are not fused; their outputs stay.
# Matters: attention with a temperature (a learned one too, once it is a constant of the graph) is exported right and then changed by
# the step that is meant to make it fast.
# Versions: onnxruntime 1.32.0, torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
cd "$work"
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import contextlib
import io

import numpy
import onnxruntime
import torch
from finding import seen, versions
from onnxruntime.transformers.optimizer import optimize_model
from torch import nn

versions("onnxruntime", "torch", "onnx", "onnxscript")
HEADS, WIDTH = 4, 32


class Layer(nn.Module):
    def __init__(self, divisor: float) -> None:
        super().__init__()
        self.divisor = divisor
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        def heads(y):
            return y.view(*y.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)

        scores = heads(self.query(x)) @ heads(self.key(x)).transpose(-1, -2) / self.divisor
        scores = scores + (1.0 - mask[:, None, None, :].to(torch.float32)) * -10000.0
        mixed = torch.softmax(scores, -1) @ heads(self.value(x))
        return self.norm(x + self.out(mixed.transpose(1, 2).reshape(x.shape)))


def export(divisor: float, newer: bool) -> nn.Module:
    torch.manual_seed(0)
    layer = Layer(divisor).eval()
    axes = {"x": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}
    options = {"dynamo": True} if newer else {"dynamo": False, "opset_version": 17, "dynamic_axes": axes}
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(layer, (x, mask), "layer.onnx", input_names=["x", "mask"], **options)
    return layer


def run(path: str) -> numpy.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x.numpy(), "mask": mask.numpy()})[0]


x, mask = torch.randn(2, 7, WIDTH) * 3, torch.ones(2, 7, dtype=torch.int64)
mask[1, 4:] = 0
for divisor, newer, kind, fused, right in (
    (8**0.5, False, "bert", 1, True),
    (2.0, False, "bert", 1, False),
    (0.5, False, "bert", 1, False),
    (2.0, False, "bart", 0, True),
    (2.0, True, "bert", 0, True),
):
    layer = export(divisor, newer)
    case = f"divisor {divisor:.2f}, {'newer' if newer else 'older'} exporter"
    with torch.no_grad():
        expected = layer(x, mask).numpy()
    seen(f"{case}: the graph equals torch", numpy.allclose(run("layer.onnx"), expected, atol=1e-4))
    model = optimize_model("layer.onnx", model_type=kind, num_heads=HEADS, hidden_size=WIDTH, opt_level=0)
    model.save_model_to_file("fused.onnx")
    nodes = sum(node.op_type == "Attention" for node in model.model.graph.node)
    same = numpy.allclose(run("fused.onnx"), expected, atol=1e-4)
    seen(f"{case}, optimized as {kind}: Attention nodes, equals torch", (nodes, same), (fused, right))
    if not right:
        layer.divisor = (WIDTH / HEADS) ** 0.5
        with torch.no_grad():
            seen("it equals torch with the divisor 2.83", numpy.allclose(run("fused.onnx"), layer(x, mask).numpy(), atol=1e-4))
PY
