#!/usr/bin/env bash
# Guess: torch's loss functions come out of torch.onnx.export as they are, or the exporter refuses them.
# Seen: cross_entropy loses its label smoothing: ONNX Runtime gives the plain loss. logsigmoid and binary_cross_entropy_with_logits lose
# their point: the exporter writes Log(Sigmoid(x)), so -120 gives -inf, and a logit of -120 for a target of 0, as right as can be, costs inf.
# Matters: a validation loss or a score that is computed in the exported model is another number than in training, without a word.
# Versions: torch 2.13.0, onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$python" - <<'PY'
import torch
import torch.nn.functional as F
from finding import seen, versions
from onnx_tools import export

versions("torch", "onnxruntime", "onnx", "onnxscript")


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def both(function, *arguments: torch.Tensor) -> list:
    """What torch and ONNX Runtime compute."""
    run, _ = export(Function(function), arguments)
    results = function(*arguments), torch.tensor(run(*(argument.numpy() for argument in arguments))[0])
    return [[round(number, 3) for number in result.reshape(-1).tolist()] for result in results]


inf = float("inf")
logits, targets = torch.tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), torch.tensor([0, 1])
seen("cross_entropy", both(F.cross_entropy, logits, targets), [[0.167], [0.167]])
seen(
    "cross_entropy, smoothing .3",
    both(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.3), logits, targets),
    [[0.667], [0.167]],
)
seen("logsigmoid", both(F.logsigmoid, torch.tensor([-120.0, -1.0, 1.0])), [[-120.0, -1.313, -0.313], [-inf, -1.313, -0.313]])
seen(
    "binary_cross_entropy_with_logits",
    both(lambda x: F.binary_cross_entropy_with_logits(x, torch.zeros(2)), torch.tensor([-120.0, 0.0])),
    [[0.347], [inf]],
)
seen("softplus", both(F.softplus, torch.tensor([-120.0, 20.0])), [[0.0, 20.0], [0.0, 20.0]])
PY
