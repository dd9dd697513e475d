"""Export to ONNX and run, for the findings about torch.onnx and ONNX Runtime."""

import contextlib
import io
import logging
import tempfile

import onnxruntime
import torch

logging.disable(logging.WARNING)


def export(model: torch.nn.Module, arguments: tuple, dynamic_shapes=None):
    """Export ``model`` with torch's current exporter.

    Returns a function from arrays to the list of outputs, and the graph's operators.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(
            model, arguments, dynamo=True, dynamic_shapes=dynamic_shapes, verbose=False
        )
    with tempfile.TemporaryDirectory() as folder:
        program.save(f"{folder}/model.onnx")
        session = onnxruntime.InferenceSession(
            f"{folder}/model.onnx", providers=["CPUExecutionProvider"]
        )

    def run(*arrays):
        return session.run(
            None,
            {given.name: array for given, array in zip(session.get_inputs(), arrays, strict=True)},
        )

    return run, [node.op_type for node in program.model.graph]
