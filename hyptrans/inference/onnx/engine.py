"""Run the graphs of a model folder with ONNX Runtime, without torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hyptrans.inference.batches import filled
from hyptrans.inference.onnx.search import Found, generator, search
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


@dataclass
class Running:
    """A batch's state between decoding steps: what the graph takes beside tokens."""

    beam: int
    source: dict[str, np.ndarray]
    """Padding, and what the encoder made of the sentences."""
    state: dict[str, np.ndarray]

    def keep(self, sentences: np.ndarray) -> None:
        """Keep only the given sentences."""
        self.source = {name: one[sentences] for name, one in self.source.items()}


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
        self._encoder, self._decoder = (
            _session(runtime, folder / name, options) for name in GRAPHS
        )
        inputs = {one.name: one for one in self._decoder.get_inputs()}
        self._kept = [name for name in inputs if name.startswith("state_")]
        self._source = [name for name in inputs if name.startswith("source_")]
        wanted = {"tokens", "parents", "position", "padding", *self._kept, *self._source}
        made = [one.name for one in self._encoder.get_outputs()]
        if wanted != inputs.keys() or made != self._source or not self._kept:
            raise UserError(
                f"{folder / GRAPHS[1]} has other inputs than a graph of hyptrans: export it again"
            )
        sizes: dict[str, int] = {"rows": 1, "earlier": 0}
        self._empty = {
            name: np.zeros([sizes.get(size, size) for size in inputs[name].shape], dtype=np.float32)
            for name in self._kept
        }
        self._next = [f"next_{i}" for i in range(len(self._kept))]

    def start(self, source: np.ndarray, padding: np.ndarray, beam: int) -> Running:
        """Encode a batch ``[B, S]``; padding is true at padding."""
        made = self._encoder.run(self._source, {"tokens": source})
        return Running(
            beam, {"padding": padding, **dict(zip(self._source, made, strict=True))}, self._empty
        )

    def step(
        self, running: Running, tokens: np.ndarray, parents: np.ndarray, position: int
    ) -> np.ndarray:
        """Return log-probabilities ``[n, beam, V]`` of the next token, and advance ``running``.

        Args:
            running: state of the batch.
            tokens: the last token of each hypothesis, ``[n, beam]``.
            parents: the state's row that each hypothesis extends, ``[n, beam]``.
            position: number of earlier tokens.
        """
        (scores,) = self._run(["scores"], running, tokens, parents, position)
        return scores

    def best(
        self, running: Running, tokens: np.ndarray, parents: np.ndarray, position: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest log-probabilities of :meth:`step`, and their tokens.

        Both are ``[n, beam, 2 beam + 2]``, largest first, or all if there are fewer.
        """
        names = ["best_scores", "best_tokens"]
        scores, best = self._run(names, running, tokens, parents, position)
        return scores, best

    def _run(
        self,
        names: list[str],
        running: Running,
        tokens: np.ndarray,
        parents: np.ndarray,
        position: int,
    ) -> list[np.ndarray]:
        # before the first token all hypotheses share one empty row
        parents = parents if position else parents * 0
        given = {"tokens": tokens, "parents": parents, "position": np.array([position])}
        made = self._decoder.run([*names, *self._next], given | running.source | running.state)
        running.state = dict(zip(self._kept, made[len(names) :], strict=True))
        return made[: len(names)]


class OnnxTranslator(TextTranslator):
    """A model folder's graphs with its text processing; :func:`hyptrans.load` makes one for onnx.

    It translates as :class:`~hyptrans.inference.translator.Translator` does; ``score``, ``align``
    and ``encode`` need torch. Samples of one seed differ from torch's.

    Args:
        folders: model folders; the probabilities of several are averaged.

    Raises:
        UserError: a folder has no graphs, or graphs that its configuration does not name.
    """

    def __init__(self, *folders: Path) -> None:
        about = [_checked(folder) for folder in folders]
        self._graphs = [Graphs(folder) for folder in folders]
        longest = (min(one[0] for one in about), min(one[1] for one in about))
        super().__init__([config.read(folder) for folder in folders], longest)

    def __repr__(self) -> str:
        source, target = self.languages
        return f"<OnnxTranslator from {source} to {target}: {self.architecture}>"

    def _generator(self, seed: int) -> Any:
        return generator(seed)

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
        longest = min(longest, self._longest[1] - 1)
        return search(self._graphs, rows, longest, settings, begun_rows, self._target.words)


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
