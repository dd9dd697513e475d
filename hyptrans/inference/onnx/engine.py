"""Run the graphs of a model folder with ONNX Runtime, without torch."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hyptrans.inference.batches import filled
from hyptrans.inference.beams import Array, Found, best_of, search
from hyptrans.inference.options import Settings
from hyptrans.inference.sharing import config
from hyptrans.inference.sharing.config import GRAPHS
from hyptrans.inference.text_translator import TextTranslator
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require

_MOST_BYTES = 4 << 30
"""Most bytes of a graph, its parameters included."""
_LOCATION = b"location"
"""Bytes in every graph that reads numbers from other files, and in none that an export writes."""


class Graphs:
    """The encoder and the decoding step of one model.

    Args:
        folder: the folder with both graphs.

    Raises:
        UserError: a graph is missing, damaged, reads other files, or has other inputs.
        MissingExtra: onnxruntime is not installed.
    """

    def __init__(self, folder: Path) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        # the variable that torch and numpy read; 0 means one thread per core
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", 0) or 0)
        options.log_severity_level = 3
        self.encoder, self.decoder = (_session(runtime, folder / name, options) for name in GRAPHS)
        inputs = {one.name: one for one in self.decoder.get_inputs()}
        kept = [name for name in inputs if name.startswith("state_")]
        self.source = [name for name in inputs if name.startswith("source_")]
        wanted = {"tokens", "parents", "position", "padding", *kept, *self.source}
        made = [one.name for one in self.encoder.get_outputs()]
        if wanted != inputs.keys() or made != self.source or not kept:
            raise UserError(
                f"{folder / GRAPHS[1]} has other inputs than a graph of hyptrans: export it again"
            )
        sizes: dict[str, int] = {"rows": 1, "earlier": 0}
        self.empty = {
            name: np.zeros([sizes.get(size, size) for size in inputs[name].shape], dtype=np.float32)
            for name in kept
        }


class Running:
    """A batch between decoding steps; see :class:`hyptrans.inference.beams.Decoding`.

    Args:
        graphs: the model.
        source: tokens ``[B, S]``, padded on the left.
        padding: ``[B, S]``, true at padding.
        temperature: divisor of the logits.
    """

    def __init__(
        self, graphs: Graphs, source: Array, padding: Array, temperature: float = 1.0
    ) -> None:
        self.graphs, self.state, self.temperature = graphs, graphs.empty, temperature
        made = graphs.encoder.run(graphs.source, {"tokens": source})
        self.source = {"padding": padding, **dict(zip(graphs.source, made, strict=True))}

    def keep(self, sentences: Array) -> None:
        self.source = {name: one[sentences] for name, one in self.source.items()}

    def scores(self, tokens: Array, parents: Array, position: int) -> Array:
        (scores,) = self._step(["scores"], tokens, parents, position)
        if self.temperature == 1:
            return scores
        logits = scores / np.float32(self.temperature)
        most = logits.max(-1, keepdims=True)
        made: Array = logits - most - np.log(np.exp(logits - most).sum(-1, keepdims=True))
        return made

    def best(self, tokens: Array, parents: Array, position: int) -> tuple[Array, Array]:
        if self.temperature == 1:
            values, best = self._step(["best_scores", "best_tokens"], tokens, parents, position)
            return values, best
        return _best(self.scores(tokens, parents, position))

    def _step(self, names: list[str], tokens: Array, parents: Array, position: int) -> list[Array]:
        # before the first token all hypotheses share one empty row
        parents = parents if position else parents * 0
        given = {"tokens": tokens, "parents": parents, "position": np.array([position])}
        after = [name.replace("state_", "next_") for name in self.state]
        made = self.graphs.decoder.run([*names, *after], given | self.source | self.state)
        self.state = dict(zip(self.state, made[len(names) :], strict=True))
        return list(made[: len(names)])


class Ensemble:
    """Several models' batches, whose probabilities are averaged."""

    def __init__(self, members: Sequence[Running]) -> None:
        self.members = members

    def keep(self, sentences: Array) -> None:
        for one in self.members:
            one.keep(sentences)

    def scores(self, tokens: Array, parents: Array, position: int) -> Array:
        scores = [one.scores(tokens, parents, position) for one in self.members]
        made: Array = np.logaddexp.reduce(scores) - np.float32(math.log(len(scores)))
        return made

    def best(self, tokens: Array, parents: Array, position: int) -> tuple[Array, Array]:
        return _best(self.scores(tokens, parents, position))


def _best(scores: Array) -> tuple[Array, Array]:
    """Return the largest scores, ``[n, beam, 2 beam + 2]`` or all there are, and their tokens."""
    shape = scores.shape
    most = min(2 * shape[1] + 2, shape[2])
    values, best = best_of(scores.reshape(-1, shape[2]), most)
    return values.reshape(*shape[:2], most), best.reshape(*shape[:2], most)


class OnnxTranslator(TextTranslator):
    """A model folder's graphs with its text processing; :func:`hyptrans.load` makes one for onnx.

    It translates as :class:`~hyptrans.inference.translator.Translator` does; ``score``, ``align``
    and ``encode`` need torch.

    Args:
        folders: model folders; the probabilities of several are averaged.

    Raises:
        UserError: a folder has no graphs, or graphs that its configuration does not name.
    """

    def __init__(self, *folders: Path) -> None:
        sources, targets = zip(*map(_checked, folders), strict=True)
        self._graphs = [Graphs(folder) for folder in folders]
        super().__init__([config.read(folder) for folder in folders], (min(sources), min(targets)))

    def __repr__(self) -> str:
        source, target = self.languages
        return f"<OnnxTranslator from {source} to {target}: {self.architecture}>"

    def _search(
        self,
        source: Sequence[Sequence[int]],
        longest: int,
        settings: Settings,
        prefix: Sequence[Sequence[int]],
    ) -> list[list[Found]]:
        rows = np.array(filled(source, self._source.words, left=True), dtype=np.int64)
        begun = filled(prefix, self._target.words, left=False)
        begun_rows = np.array(begun, dtype=np.int64).reshape(len(rows), -1)
        padding = rows == self._source.words.pad()
        running = [Running(one, rows, padding, settings.temperature) for one in self._graphs]
        longest = min(longest, self._longest[1] - 1)
        decoding = running[0] if len(running) == 1 else Ensemble(running)
        return search(decoding, longest, settings, begun_rows, self._target.words)


def _checked(folder: Path) -> tuple[int, int]:
    """Return most tokens of source and target; check that a folder's graphs are those it names."""
    from hashlib import sha256

    path = folder / config.CONFIG
    about = config.own_config(folder).get("onnx")
    if about is None:
        raise UserError(
            f"{folder} has no ONNX graphs: hyptrans export {folder} --onnx float32 --out FOLDER "
            "adds them"
        )
    try:
        source, target = (int(size) for size in about["longest"])
        hashes = {name: str(about["sha256"][name]) for name in GRAPHS}
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged: its onnx is not what an export writes") from error
    for name, wanted in hashes.items():
        if sha256(_content(folder / name)).hexdigest() != wanted:
            raise UserError(f"{folder / name} is not the graph that {path} names: export it again")
    return source, target


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise UserError(f"{path} is missing: export the model again with --onnx float32")
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path} has more than {_MOST_BYTES:,} bytes: no graph of hyptrans has")
    return path.read_bytes()


def _session(runtime: Any, path: Path, options: Any) -> Any:
    """Return a session of a graph, and refuse graphs that read other files."""
    content = _content(path)
    config.check_pointer(path, content)
    if _LOCATION in content:
        raise UserError(f"{path} reads numbers from other files: graphs of hyptrans hold their own")
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's exceptions have no other common base
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{path} is damaged or no ONNX graph ({reason})") from error
