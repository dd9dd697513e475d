"""Run the graphs of a model folder with ONNX Runtime, without torch."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hyptrans.inference.beams import Array, Found, best_of, search
from hyptrans.inference.options import Settings
from hyptrans.inference.sharing import folder
from hyptrans.inference.sharing.folder import GRAPHS
from hyptrans.inference.text_translator import TextTranslator
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import read_bytes

_MOST_BYTES = 4 << 30
"""Most bytes of a graph, its parameters included."""
_LOCATION = b"location"
"""Bytes in every graph that reads numbers from other files, and in none that an export writes."""


class Graphs:
    """The encoder and the decoding step in a folder, whose files have the SHA-256 ``hashes``.

    Raises:
        UserError: a graph is missing, damaged, replaced, reads other files, or has other inputs.
        MissingExtra: onnxruntime is not installed.
    """

    def __init__(self, folder: Path, hashes: Mapping[str, str]) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        # the variable that torch and numpy read; 0 means one thread per core
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", 0) or 0)
        options.log_severity_level = 3
        self.encoder, self.decoder = (
            _session(runtime, folder / name, options, hashes[name]) for name in GRAPHS
        )
        inputs = {one.name: one for one in self.decoder.get_inputs()}
        self.state = [name for name in inputs if name.startswith("state_")]
        self.source = [name for name in inputs if name.startswith("source_")]
        self.after = [name.replace("state_", "next_") for name in self.state]
        wanted = {"tokens", "parents", "position", "padding", *self.state, *self.source}
        made = [one.name for one in self.encoder.get_outputs()]
        if wanted != inputs.keys() or made != self.source or not self.state:
            raise UserError(
                f"{folder / GRAPHS[1]} has other inputs than a graph of hyptrans: export it again"
            )
        sizes: dict[str, int] = {"rows": 1, "earlier": 0}
        self.empty = {
            name: np.zeros([sizes.get(size, size) for size in inputs[name].shape], dtype=np.float32)
            for name in self.state
        }

    def read(self, source: Array, padding: Array) -> dict[str, Array]:
        """Return the decoder's inputs before the first step: the sources and an empty state."""
        made = self.encoder.run(self.source, {"tokens": source})
        return {"padding": padding, **dict(zip(self.source, made, strict=True)), **self.empty}


class Running:
    """A batch between decoding steps; see :class:`hyptrans.inference.beams.Decoding`.

    Args:
        models: the model, or those of an ensemble, whose probabilities are averaged.
        source: tokens ``[B, S]``, padded on the left.
        padding: ``[B, S]``, true at padding.
        temperature: divisor of the logits.
    """

    def __init__(
        self, models: Sequence[Graphs], source: Array, padding: Array, temperature: float = 1.0
    ) -> None:
        self.models, self.temperature = models, temperature
        self.inputs = [one.read(source, padding) for one in models]
        """Each decoder's inputs, from which the next step takes all but the tokens."""

    def keep(self, sentences: Array) -> None:
        for model, inputs in zip(self.models, self.inputs, strict=True):
            for name in ("padding", *model.source):
                inputs[name] = inputs[name][sentences]

    def scores(self, tokens: Array, parents: Array, position: int) -> Array:
        every: list[Array] = []
        for i in range(len(self.models)):
            (scores,) = self._step(i, ["scores"], tokens, parents, position)
            if self.temperature != 1:
                logits = scores / np.float32(self.temperature)
                logits -= logits.max(-1, keepdims=True)
                scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            every.append(scores)
        if len(every) == 1:
            return every[0]
        mean: Array = np.logaddexp.reduce(every) - np.float32(math.log(len(every)))
        return mean

    def best(self, tokens: Array, parents: Array, position: int) -> tuple[Array, Array]:
        if len(self.models) == 1 and self.temperature == 1:
            names = ["best_scores", "best_tokens"]
            values, best = self._step(0, names, tokens, parents, position)
            return values, best
        scores = self.scores(tokens, parents, position)
        n, beam, symbols = scores.shape
        most = min(2 * beam + 2, symbols)
        values, best = best_of(scores.reshape(-1, symbols), most)
        return values.reshape(n, beam, most), best.reshape(n, beam, most)

    def _step(
        self, i: int, names: list[str], tokens: Array, parents: Array, position: int
    ) -> list[Array]:
        """Run a model's next step and return some of its outputs."""
        model, inputs = self.models[i], self.inputs[i]
        # before the first token all hypotheses share one empty row
        inputs["parents"] = parents if position else parents * 0
        inputs["tokens"], inputs["position"] = tokens, np.array([position])
        made: list[Array] = model.decoder.run([*names, *model.after], inputs)
        inputs.update(zip(model.state, made[len(names) :], strict=True))
        return made[: len(names)]


class OnnxTranslator(TextTranslator):
    """A model folder's graphs with its text processing; :func:`hyptrans.load` makes one for onnx.

    It translates as :class:`~hyptrans.inference.translator.Translator` does; ``score``, ``align``
    and ``encode`` need torch. The probabilities of several folders are averaged.

    Raises:
        UserError: a folder has no graphs, or graphs that its configuration does not name.
    """

    def __init__(self, *folders: Path) -> None:
        longest, hashes = zip(*map(_described, folders), strict=True)
        self._graphs = [Graphs(*one) for one in zip(folders, hashes, strict=True)]
        source, target = map(min, zip(*longest, strict=True))
        super().__init__([folder.read_rules(one) for one in folders], (source, target))

    def __repr__(self) -> str:
        source, target = self.languages
        return f"<OnnxTranslator from {source} to {target}: {self.architecture}>"

    def __getattr__(self, name: str) -> Any:
        if name in ("score", "align", "encode"):
            raise AttributeError(f"{name} needs torch: load the model without engine='onnx'")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _search(
        self, source: Array, longest: int, settings: Settings, prefix: Array
    ) -> list[list[Found]]:
        padding = source == self._source.words.pad()
        decoding = Running(self._graphs, source, padding, settings.temperature)
        return search(decoding, longest, settings, prefix, self._target.words)


def _described(place: Path) -> tuple[tuple[int, int], dict[str, str]]:
    """Return the most tokens of source and target, and the hashes of a model folder's graphs."""
    about = folder.own_config(place).get("onnx")
    if about is None:
        raise UserError(
            f"{place} has no ONNX graphs: hyptrans export {place} --onnx float32 --out FOLDER "
            "writes a copy with them; name that folder"
        )
    try:
        source, target = map(int, about["longest"])
        return (source, target), {name: str(about["sha256"][name]) for name in GRAPHS}
    except (KeyError, TypeError, ValueError) as error:
        path = place / folder.CONFIG
        raise UserError(f"{path} is damaged: its onnx is not what an export writes") from error


def _session(runtime: Any, path: Path, options: Any, digest: str) -> Any:
    """Return a session of a graph; refuse other graphs, and those that read other files."""
    try:
        content = read_bytes(path, _MOST_BYTES)
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError("it is not the graph that config.json names")
        if _LOCATION in content:
            raise ValueError("it reads numbers from other files")
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's exceptions have no other common base
        reason = " ".join(str(error).split())[:120]
        raise UserError(
            f"{path} cannot be used ({reason}): export the model again with --onnx float32"
        ) from error
