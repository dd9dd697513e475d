"""States of words in one safetensors file, written and read piece by piece.

The file holds one tensor, ``states`` ``[words, layers, width]`` in float32: the words of all kept
sentences one after the other, so that a sentence with all its layers is one stretch of the file.
What else is known of them is JSON in the file's metadata.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import whole_file

FORMAT = "hyptrans states 1"
_NAME = "states"
_TYPE = np.dtype("<f4")


@dataclass(frozen=True)
class LeftOut:
    """A sentence without states: its place in the tree file, its name, and why."""

    index: int
    id: str
    reason: str


@dataclass(frozen=True)
class Contents:
    """What a file of states is about.

    Attributes:
        architecture: name, as of ``--arch``.
        checkpoint: the file, as it was named.
        checkpoint_sha256: its hash.
        random: the parameters were not the checkpoint's but drawn with ``seed``.
        seed: of those.
        trees: the tree file, as it was named.
        trees_sha256: its hash.
        spaces: of each layer, 0 the embeddings.
        kept: places in the tree file of the sentences that have states.
        lengths: their numbers of words.
        left_out: the other sentences.
    """

    architecture: str
    checkpoint: str
    checkpoint_sha256: str
    random: bool
    seed: int
    trees: str
    trees_sha256: str
    spaces: list[Space]
    kept: list[int]
    lengths: list[int]
    left_out: list[LeftOut]


class Writer:
    """Takes the states of sentences in any order; :func:`writing` makes one."""

    def __init__(self, file: BinaryIO, contents: Contents, width: int) -> None:
        self._file = file
        self._lengths = contents.lengths
        self._shape = (len(contents.spaces), width)
        self._starts = _starts(contents.lengths)
        self._head = file.write(_header(contents, (self._starts[-1], *self._shape)))
        self._missing = set(range(len(contents.lengths)))

    def write(self, i: int, states: Tensor) -> None:
        """Write the states of kept sentence ``i``, ``[words, layers, width]``.

        Raises:
            ValueError: the shape is another one.
        """
        if states.shape != (self._lengths[i], *self._shape):
            raise ValueError(f"states of sentence {i} have shape {tuple(states.shape)}")
        row = self._shape[0] * self._shape[1] * _TYPE.itemsize
        self._file.seek(self._head + self._starts[i] * row)
        self._file.write(states.contiguous().numpy().astype(_TYPE, copy=False).tobytes())
        self._missing.discard(i)

    def finish(self) -> None:
        """Check that nothing is missing.

        Raises:
            ValueError: a sentence was not written.
        """
        if self._missing:
            raise ValueError(f"{len(self._missing)} of {len(self._lengths)} sentences are missing")


@contextmanager
def writing(path: Path, contents: Contents, width: int) -> Iterator[Writer]:
    """Write a file of states, which appears when it is whole.

    Args:
        path: the file.
        contents: goes into its metadata.
        width: numbers per state.
    """
    with whole_file(path) as file:
        writer = Writer(file, contents, width)
        yield writer
        writer.finish()


class States:
    """A file of states, memory-mapped: only what is asked for is read.

    ``sentence`` and ``batch`` count kept sentences: the tree of number ``i`` is number ``kept[i]``
    of the tree file.
    """

    def __init__(self, path: Path, contents: Contents, values: np.ndarray) -> None:
        self.path = path
        self.contents = contents
        self.architecture = contents.architecture
        self.checkpoint = contents.checkpoint
        self.checkpoint_sha256 = contents.checkpoint_sha256
        self.random = contents.random
        self.seed = contents.seed
        self.trees = contents.trees
        self.trees_sha256 = contents.trees_sha256
        self.spaces = contents.spaces
        self.kept = contents.kept
        self.lengths = contents.lengths
        self.left_out = contents.left_out
        self.layers, self.width = values.shape[1:]
        self._values = values
        self._starts = _starts(contents.lengths)

    @classmethod
    def open(cls, path: Path) -> "States":
        """Open a file that :class:`Writer` wrote.

        Raises:
            UserError: it is missing, damaged or something else.
        """
        safetensors = require("safetensors", "probing")
        if not path.is_file():
            raise UserError(f"{path} is not a file: python -m probing extract writes one")
        try:
            with safetensors.safe_open(path, "np") as file:
                metadata = file.metadata() or {}
                shape = file.get_slice(_NAME).get_shape()
            contents = _from_metadata(metadata)
        except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{path} is damaged or no file of states ({error}): write it again with python -m "
                "probing extract"
            ) from error
        with open(path, "rb") as file:
            start = 8 + int.from_bytes(file.read(8), "little")
        values = np.memmap(path, _TYPE, "r", start, tuple(shape))
        return cls(path, contents, values)

    def __len__(self) -> int:
        return len(self.lengths)

    def sentence(self, i: int) -> Tensor:
        """States of kept sentence ``i``: ``[layers, words, width]``."""
        rows = self._values[self._starts[i] : self._starts[i + 1]]
        # a copy in any case, as the file is not to be written to
        return torch.from_numpy(np.array(rows.transpose(1, 0, 2), np.float32, order="C"))

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """States of several kept sentences.

        Returns:
            ``[layers, B, N, width]``, zeros after the last word, and the numbers of words ``[B]``.
        """
        lengths = [self.lengths[i] for i in indices]
        shape = (self.layers, len(lengths), max(lengths, default=0), self.width)
        values = np.zeros(shape, np.float32)
        for row, (i, length) in enumerate(zip(indices, lengths, strict=True)):
            rows = self._values[self._starts[i] : self._starts[i + 1]]
            values[:, row, :length] = rows.transpose(1, 0, 2)
        return torch.from_numpy(values), torch.tensor(lengths, dtype=torch.int64)


def _starts(lengths: Sequence[int]) -> list[int]:
    """Rows before each sentence, and the number of all rows at the end."""
    return [0, *accumulate(lengths)]


def _header(contents: Contents, shape: tuple[int, int, int]) -> bytes:
    """What stands before the numbers: the length of the JSON, and the JSON itself."""
    size = shape[0] * shape[1] * shape[2] * _TYPE.itemsize
    head = {
        "__metadata__": {"format": FORMAT, "contents": json.dumps(asdict(contents))},
        _NAME: {"dtype": "F32", "shape": shape, "data_offsets": [0, size]},
    }
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _from_metadata(metadata: dict[str, str]) -> Contents:
    """The other way round.

    Raises:
        ValueError: it is of another format.
    """
    if metadata.get("format") != FORMAT:
        raise ValueError(f"its format is {metadata.get('format')}, not {FORMAT}")
    found: dict[str, Any] = json.loads(metadata["contents"])
    found["spaces"] = [Space(**space) for space in found["spaces"]]
    found["left_out"] = [LeftOut(**left) for left in found["left_out"]]
    return Contents(**found)
