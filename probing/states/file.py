"""States of words in one safetensors file, written and read piece by piece.

The file holds one tensor, ``states`` ``[words, layers, width]`` in float32: the words of all kept
sentences one after the other, so that a sentence with all its layers is one stretch of the file.
What else is known of them is JSON in the file's metadata. Neither side holds more than a batch of
them in memory.
"""

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError, unquoted
from hyptrans.support.files import whole_file
from hyptrans.support.stored import build, read_json

FORMAT = "hyptrans states 2"
_NAME = "states"
_TYPE = np.dtype("<f4")
_ALIGNED = 8
"""Bytes of the header's length, and what the header is filled up to a multiple of."""
_DAMAGED = (SafetensorError, UserError, KeyError, TypeError, ValueError, RuntimeError)
"""What a wrong field or size raises; settings out of range are told as those of a command."""


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
        encoder: its file, folder or name, as it was named.
        identity: another one where its parameters are others; the file's hash.
        random: the parameters were not the checkpoint's but drawn with ``seed``.
        seed: of those.
        trees: the tree file, as it was named.
        trees_sha256: its hash.
        spaces: of each layer, 0 the embeddings.
        kept: places in the tree file of the sentences that have states.
        lengths: their numbers of words.
        left_out: the other sentences.
        unknown: words with a piece that stands for what the vocabulary lacks.
        split: words of more than one piece.
    """

    architecture: str
    encoder: str
    identity: str
    random: bool
    seed: int
    trees: str
    trees_sha256: str
    spaces: list[Space]
    kept: list[int]
    lengths: list[int]
    left_out: list[LeftOut]
    unknown: int
    split: int

    @property
    def origin(self) -> str:
        """The same for states of one encoder with the same parameters."""
        drawn = f" with parameters drawn with seed {self.seed}" if self.random else ""
        return f"{self.identity}{drawn}"


class Writer:
    """Takes the states of sentences in any order; :func:`writing` makes one."""

    def __init__(self, file: BinaryIO, contents: Contents, width: int) -> None:
        self._file = file
        self._lengths = contents.lengths
        self._shape = (len(contents.spaces), width)
        self._starts = _starts(contents.lengths)
        self._missing = set(range(len(contents.lengths)))
        self._header = _header(contents, width)
        file.write(self._header)

    def write(self, i: int, states: Tensor) -> None:
        """Write the states of kept sentence ``i``, ``[words, layers, width]``.

        Raises:
            ValueError: the shape is another one.
        """
        if states.shape != (self._lengths[i], *self._shape):
            raise ValueError(f"states of sentence {i} have shape {tuple(states.shape)}")
        row = self._shape[0] * self._shape[1] * _TYPE.itemsize
        self._file.seek(len(self._header) + self._starts[i] * row)
        self._file.write(states.contiguous().numpy().astype(_TYPE, copy=False).tobytes())
        self._missing.discard(i)

    def finish(self) -> None:
        """Check that all is written.

        Raises:
            ValueError: a sentence was not written.
        """
        if self._missing:
            raise ValueError(f"{len(self._missing)} of {len(self._lengths)} sentences are missing")


@contextmanager
def writing(path: Path, contents: Contents, width: int) -> Iterator[Writer]:
    """Write a file of states, which appears when it is whole.

    Sentences come in any order and safetensors writes a tensor in one go, so its format is written
    here: the length of a header, the header in JSON, and the numbers.

    Args:
        path: the file.
        contents: goes into its metadata.
        width: numbers per state.
    """
    with whole_file(path) as file:
        writer = Writer(file, contents, width)
        yield writer
        writer.finish()


def room_for(path: Path, contents: Contents, width: int) -> str:
    """How large a file of states will be, in words.

    Raises:
        UserError: its disk has less room.
    """
    size = sum(contents.lengths) * len(contents.spaces) * width * _TYPE.itemsize
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise UserError(
            f"{path} needs {_megabytes(size)} and its disk has {_megabytes(free)} left: name "
            "a file on another one, or take fewer sentences"
        )
    return _megabytes(size)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


@contextmanager
def reading(
    path: Path, what: str, command: str, form: str, framework: str
) -> Iterator[tuple[Any, dict[str, str]]]:
    """Open a file of safetensors; what is wrong with its contents is told in one sentence.

    Args:
        path: the file.
        what: it holds.
        command: of ``python -m probing`` that writes it.
        form: that its metadata must name as its format.
        framework: of its tensors, as safetensors names it.

    Returns:
        The open file and its metadata.

    Raises:
        UserError: it is missing, damaged or something else.
    """
    if not path.is_file():
        raise UserError(f"{path} is not a file: python -m probing {command} writes one")
    try:
        with safe_open(path, framework) as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != form:
                raise ValueError(f"its format is {metadata.get('format')}, not {form}")
            yield file, metadata
    except _DAMAGED as error:
        reason = unquoted(error).partition("\n")[0]
        raise UserError(
            f"{path} is damaged or no file of {what} ({reason}): write it again with python -m "
            f"probing {command}"
        ) from error


class States:
    """A file of states: only what is asked for is read.

    ``sentence`` and ``batch`` count kept sentences: the tree of number ``i`` is number ``kept[i]``
    of the tree file.
    """

    def __init__(self, path: Path, contents: Contents, values: Any) -> None:
        self.path = path
        self.contents = contents
        self.architecture = contents.architecture
        self.origin = contents.origin
        self.spaces = contents.spaces
        self.kept = contents.kept
        self.lengths = contents.lengths
        self.layers, self.width = values.get_shape()[1:]
        self._values = values
        self._starts = _starts(contents.lengths)

    @classmethod
    def open(cls, path: Path) -> "States":
        """Open a file that :class:`Writer` wrote.

        Raises:
            UserError: it is missing, damaged or something else.
        """
        with reading(path, "states", "extract", FORMAT, "np") as (file, metadata):
            contents, values = _from_metadata(metadata), file.get_slice(_NAME)
            _check(values, contents)
        return cls(path, contents, values)

    def __len__(self) -> int:
        return len(self.lengths)

    def sentence(self, i: int) -> Tensor:
        """States of kept sentence ``i``: ``[layers, words, width]``."""
        return torch.from_numpy(self._rows(i).transpose(1, 0, 2)).contiguous()

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """States of several kept sentences.

        Returns:
            ``[layers, B, N, width]``, zeros after the last word, and the numbers of words ``[B]``.
        """
        lengths = [self.lengths[i] for i in indices]
        shape = (self.layers, len(lengths), max(lengths, default=0), self.width)
        values = np.zeros(shape, np.float32)
        for row, (i, length) in enumerate(zip(indices, lengths, strict=True)):
            values[:, row, :length] = self._rows(i).transpose(1, 0, 2)
        return torch.from_numpy(values), torch.tensor(lengths, dtype=torch.int64)

    def _rows(self, i: int) -> np.ndarray:
        """A copy of the states of kept sentence ``i``: ``[words, layers, width]``."""
        rows: np.ndarray = self._values[self._starts[i] : self._starts[i + 1]]
        return rows


def _starts(lengths: Sequence[int]) -> list[int]:
    """Rows before each sentence, and the number of all rows at the end."""
    return [0, *accumulate(lengths)]


def _header(contents: Contents, width: int) -> bytes:
    """What stands before the numbers, as safetensors reads it."""
    shape = [sum(contents.lengths), len(contents.spaces), width]
    tensor = {
        "dtype": "F32",
        "shape": shape,
        "data_offsets": [0, math.prod(shape) * _TYPE.itemsize],
    }
    metadata = {"format": FORMAT, "contents": json.dumps(asdict(contents))}
    header = json.dumps({"__metadata__": metadata, _NAME: tensor}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGNED)
    return len(header).to_bytes(_ALIGNED, "little") + header


def _check(values: Any, contents: Contents) -> None:
    """Compare the tensor with what the metadata says of it.

    Raises:
        ValueError: it has another type or shape.
    """
    shape = values.get_shape()
    wanted = ["F32", 3, sum(contents.lengths), len(contents.spaces)]
    found = [values.get_dtype(), len(shape), *shape[:2]]
    if found != wanted:
        raise ValueError(f"its tensor is of type, dimensions and sizes {found}, not {wanted}")
    if shape[2] < 1:
        raise ValueError("its states have no numbers")
    if len({space.kind for space in contents.spaces}) != 1:
        raise ValueError("its layers are not of one kind of space")


def _from_metadata(metadata: dict[str, str]) -> Contents:
    """The other way round.

    Raises:
        ValueError: its parts do not go together.
    """
    contents = build(Contents, read_json(metadata["contents"]))
    places = [*contents.kept, *(left.index for left in contents.left_out)]
    once = len(set(places)) == len(places) and min(places, default=0) >= 0
    if not once or contents.kept != sorted(contents.kept):
        raise ValueError("its kept sentences and those left out are not places in a file of trees")
    if len(contents.kept) != len(contents.lengths) or min(contents.lengths, default=1) < 1:
        raise ValueError("the lengths of its sentences are not those of sentences")
    return contents
