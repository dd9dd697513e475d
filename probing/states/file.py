"""Write and read word states in a NumPy file, piece by piece; JSON beside it describes them.

The file holds ``[words, layers, width]`` in float32, the words of all kept sentences in sequence,
so that a sentence with all its layers is one stretch of the file. Neither writing nor reading holds
more than a batch in memory.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from hyptrans.support.files import whole_file, write_json

_TYPE = np.dtype("<f4")


@dataclass(frozen=True)
class Contents:
    """Description of a file of states.

    Attributes:
        architecture: name of the encoder's architecture, as for ``--arch``.
        identity: see ``WordEncoder``.
        spaces: space of each layer, 0 for the embeddings.
        kept: places in the tree file of the sentences that have states.
        lengths: number of words of each kept sentence.
        left_out: the other sentences: for each its ``index`` in the file, ``id`` and ``reason``.
    """

    architecture: str
    identity: str
    spaces: list[Space]
    kept: list[int]
    lengths: list[int]
    left_out: list[dict[str, Any]]


def about(path: Path) -> Path:
    """Return the path of the JSON beside a file of states."""
    return path.with_suffix(".json")


@contextmanager
def writing(path: Path, contents: Contents, width: int) -> Iterator[Callable[[int, Tensor], None]]:
    """Write a file of states, which appears only when complete, and then its JSON.

    Yields:
        A function that writes the states of kept sentence ``i``, ``[words, layers, width]``; any
        order will do.
    """
    starts, layers = [0, *accumulate(contents.lengths)], len(contents.spaces)
    shape = (starts[-1], layers, width)
    header = {"descr": _TYPE.str, "fortran_order": False, "shape": shape}
    with whole_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        begin = file.tell()

        def write(i: int, states: Tensor) -> None:
            file.seek(begin + starts[i] * layers * width * _TYPE.itemsize)
            file.write(states.contiguous().numpy().astype(_TYPE, copy=False).tobytes())

        yield write
    write_json(about(path), asdict(contents))


class States:
    """A file of states that reads only what is requested.

    ``sentence`` and ``batch`` take indices of kept sentences: the tree of sentence ``i`` is number
    ``kept[i]`` of the tree file.
    """

    def __init__(self, path: Path) -> None:
        found = json.loads(about(path).read_text(encoding="utf-8"))
        found["spaces"] = [Space(**space) for space in found["spaces"]]
        self.path, self.contents = path, Contents(**found)
        self.architecture, self.spaces = self.contents.architecture, self.contents.spaces
        self.kept, self.lengths = self.contents.kept, self.contents.lengths
        self._values = np.load(path, mmap_mode="r", allow_pickle=False)
        self.layers, self.width = self._values.shape[1:]
        self._starts = [0, *accumulate(self.lengths)]

    def __len__(self) -> int:
        return len(self.lengths)

    def sentence(self, i: int) -> Tensor:
        """Return the states of kept sentence ``i``, ``[layers, words, width]``."""
        return self.batch([i])[0][:, 0]

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the states of several kept sentences.

        Returns:
            ``[layers, B, N, width]``, zeros after the last word, and the numbers of words ``[B]``.
        """
        lengths = [self.lengths[i] for i in indices]
        shape = (self.layers, len(lengths), max(lengths, default=0), self.width)
        values = np.zeros(shape, np.float32)
        for row, i in enumerate(indices):
            own = self._values[self._starts[i] : self._starts[i + 1]]
            values[:, row, : len(own)] = own.transpose(1, 0, 2)
        return torch.from_numpy(values), torch.tensor(lengths, dtype=torch.int64)
