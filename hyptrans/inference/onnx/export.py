"""Write the graphs of a model beside its parameters, and compare them with torch."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from hyptrans.inference.onnx.engine import Graphs, Running
from hyptrans.inference.onnx.graphs import SourceGraph, StepGraph
from hyptrans.inference.sharing.folder import GRAPHS
from hyptrans.seq2seq.model import EncoderDecoder
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import sha256

OPSET = 20
ROUNDING, MOST_TIMES = 1e-4, 3.0
"""A float32 graph's log-probabilities may differ this much from float64's, or this many times as
much as torch's float32 does: a trained model may amplify both errors a thousandfold."""
MOST_ROUNDED = 1.0
"""The same for 8 bits. The random sentences of the check are no text: a trained model rounded to
8 bits reaches 0.6 on them, and a wrong graph several units at the likeliest tokens."""
_SENTENCES, _LONGEST, _STEPS, _BEAM = 20, 12, 3, 2
"""Sizes of that check: random sentences, most tokens of one, decoding steps, and hypotheses."""


def write(model: EncoderDecoder, folder: Path, weights: str = "float32") -> dict[str, Any]:
    """Write ``encoder.onnx`` and ``decoder.onnx`` into an unfinished model folder.

    Args:
        model: a model in evaluation mode, float32, on the CPU.
        folder: the folder to write to.
        weights: ``float32``, or ``int8``, which rounds tables and matrices to 8 bits.

    Returns:
        Their entry in ``config.json``: opset, producer, weights, longest sentences, shapes of an
        empty state, and the SHA-256 of each file.

    Raises:
        UserError: the graphs' log-probabilities differ too much from torch's.
    """
    encoder, decoder = (folder / name for name in GRAPHS)
    with torch.no_grad():
        _write_graphs(model, encoder, decoder)
        if weights == "int8":
            for path in (encoder, decoder):
                _quantize(path)
        about: dict[str, Any] = {
            "opset": OPSET,
            "producer": f"torch {torch.__version__}",
            "weights": weights,
            "longest": [model.encoder.longest, model.decoder.longest],
            "empty_state": [list(one.shape[1:]) for one in StepGraph(model).empty(1)],
            "sha256": {path.name: sha256(path) for path in (encoder, decoder)},
        }
        error, of_torch = largest_errors(model, Graphs(folder, about["sha256"]))
    bound = MOST_ROUNDED if weights == "int8" else max(ROUNDING, MOST_TIMES * of_torch)
    if not error <= bound:
        raise UserError(
            f"the ONNX graphs of this model are wrong by {error:.2g} in relative log-probability "
            f"(torch in float32: {of_torch:.2g}): translate with torch, and report this model's "
            "options"
        )
    return about


def largest_errors(model: EncoderDecoder, graphs: Graphs) -> tuple[float, float]:
    """Return the largest errors of log-probabilities s, of graphs and of torch in float32.

    Both are differences from the model in float64, in units of 1 + |s|. Sentences are random, of
    several lengths, and take a few steps; the two hypotheses of each sentence swap places after
    every step.
    """
    draw, worst = torch.Generator().manual_seed(0), [0.0, 0.0]
    words = model.encoder.dictionary
    lengths = torch.randint(1, _LONGEST, (_SENTENCES,), generator=draw).tolist()
    source = torch.full((_SENTENCES, _LONGEST), words.pad())
    for row, length in zip(source, lengths, strict=True):
        row[-length:] = torch.randint(words.nspecial, len(words), (length,), generator=draw)
    source[:, -1] = words.eos()
    padding = source.eq(words.pad())
    models = [copy.deepcopy(model).double(), model]
    memories = [one.encoder.memory(source)[0] for one in models]
    found = Running([graphs], source.numpy(), padding.numpy())
    shape, target = (_SENTENCES, _BEAM), model.decoder.dictionary
    rows = torch.arange(_SENTENCES * _BEAM).view(shape)
    prefix = torch.full((rows.numel(), 1), target.eos())
    for position in range(_STEPS):
        last, parents = prefix[:, -1].view(shape), rows.flip(1) if position else rows
        made = torch.from_numpy(found.scores(last.numpy(), parents.numpy(), position))
        exact, rounded = (
            F.log_softmax(one.decoder.predict(prefix, memory, padding)[:, -1], -1).view_as(made)
            for one, memory in zip(models, memories, strict=True)
        )
        for i, scores in enumerate((made, rounded)):
            # the score of padding may be minus infinity on both sides
            apart = (scores - exact).abs() / (1 + exact.abs())
            worst[i] = max(worst[i], float(torch.where(scores == exact, 0.0, apart).max()))
        drawn = torch.randint(target.nspecial, len(target), (rows.numel(), 1), generator=draw)
        prefix = torch.cat([prefix[rows.flip(1).flatten()], drawn], dim=1)
    return worst[0], worst[1]


def _write_graphs(model: EncoderDecoder, encoder: Path, decoder: Path) -> None:
    sentences, beam, length = (Dim(name, max=1 << 20) for name in ("sentences", "beam", "length"))
    rows, earlier = Dim("rows", max=1 << 24), Dim("earlier", max=1 << 20)
    words = model.encoder.dictionary
    source = torch.full((3, 5), words.nspecial)
    source[1, :2], source[:, -1] = words.pad(), words.eos()
    memory = SourceGraph(model)(source)
    names = [f"source_{i}" for i in range(len(memory))]
    _export(SourceGraph(model), (source,), encoder, ["tokens"], names, ({0: sentences, 1: length},))
    step = StepGraph(model)
    state = step.empty(6, 2)
    last = torch.full((3, 2), model.decoder.dictionary.eos())
    given = (last, last * 0, torch.tensor([2]), source.eq(words.pad()), memory, state)
    kept = [f"state_{i}" for i in range(len(state))]
    inputs = ["tokens", "parents", "position", "padding", *names, *kept]
    outputs = ["scores", "best_scores", "best_tokens", *(f"next_{i}" for i in range(len(state)))]
    hypotheses = {0: sentences, 1: beam}
    of_source = [{0: sentences, 2: length} if _has(one, 5) else {0: sentences} for one in memory]
    of_state = [{0: rows, 2: earlier} if _has(one, 2) else {0: rows} for one in state]
    shapes = [hypotheses, hypotheses, {}, {0: sentences, 1: length}, of_source, of_state]
    _export(step, given, decoder, inputs, outputs, tuple(shapes))


def _has(one: Tensor, length: int) -> bool:
    """Return whether a tensor holds keys or values of ``length`` positions, not sums."""
    return one.dim() == 4 and one.size(2) == length


def _export(
    module: nn.Module,
    given: tuple[Any, ...],
    path: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    shapes: tuple[Any, ...],
) -> None:
    from hyptrans.inference.onnx.simplify import TRANSLATIONS, simplify

    level = logging.getLogger("torch.onnx").level
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module.eval(),
                given,
                input_names=inputs,
                output_names=outputs,
                dynamo=True,
                dynamic_shapes=shapes,
                opset_version=OPSET,
                external_data=False,
                custom_translation_table=TRANSLATIONS,
                verbose=False,
            )
    finally:
        logging.getLogger("torch.onnx").setLevel(level)
    assert program is not None
    simplify(program.model)
    for node in program.model.graph.all_nodes():
        # the metadata would record local source paths
        node.metadata_props.clear()
        for value in node.outputs:
            value.metadata_props.clear()
    program.model.metadata_props.clear()
    program.save(path, external_data=False)


def _quantize(path: Path) -> None:
    """Round tables and matrices to 8 bits, in place.

    A matrix has a scale and an offset for each column, a table of embeddings one of each.
    """
    quantization = require("onnxruntime.quantization", "onnx")
    model = onnx.load(path)
    # onnxruntime computes no product with a stack of matrices that has a scale for each column
    stacks = {one.name for one in model.graph.initializer if len(one.dims) > 2}
    quantization.quantize_dynamic(
        model,
        path,
        op_types_to_quantize=["MatMul", "Gemm", "Gather"],
        nodes_to_exclude=[one.name for one in model.graph.node if stacks & set(one.input)],
        per_channel=True,
        weight_type=quantization.QuantType.QUInt8,
    )
