"""Batches of word states together with the trees of their sentences."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from hyptrans.support.errors import UserError
from probing.states.file import States
from probing.text.trees import Sentence, distance_matrix

LARGEST_PAIRS = 1 << 20
"""Most pairs of words in a batch; batches of long sentences (32 of more than 180 words) are split,
which bounds memory: 4 MiB for every layer and tensor of distances."""
POOL = 50
"""Batches per pool: each pool of shuffled sentences is sorted by length and cut into batches."""


def check_learnable(lengths: Iterable[int], name: object) -> None:
    """Check that not all sentences have one word: their trees are equal, and no probe can learn.

    Raises:
        UserError: all of them do; names what holds them.
    """
    if max(lengths) < 2:
        raise UserError(
            f"{name} has only sentences of one word, from which no probe learns a tree; take others"
        )


@dataclass(frozen=True)
class Batch:
    """Sentences padded to the longest."""

    sentences: list[Sentence]
    states: Tensor
    """``[layers, B, N, width]``, zero at padding."""
    lengths: Tensor
    """``[B]``."""
    distances: Tensor
    """``[B, N, N]``, float32, zero at padding."""
    depths: Tensor
    """``[B, N]``, float32, zero at padding."""

    @property
    def words(self) -> Tensor:
        """Return the mask of words, ``[B, N]``, false at padding."""
        places = torch.arange(self.depths.size(1), device=self.lengths.device)
        return places < self.lengths.unsqueeze(1)

    def to(self, device: str) -> "Batch":
        """Return the batch on a device, named as in torch."""
        tensors = (self.states, self.lengths, self.distances, self.depths)
        return Batch(self.sentences, *(tensor.to(device) for tensor in tensors))


class Corpus:
    """States of sentences and their trees; ``rows`` index the states, ``places`` the trees.

    Args:
        states: states of some or all of the sentences.
        sentences: all sentences of the tree file.
        name: name of the states in messages.
        only: places in the tree file of the sentences to use; None uses all that have states.
    """

    def __init__(
        self,
        states: States,
        sentences: Sequence[Sentence],
        name: str = "the states",
        only: Container[int] | None = None,
    ) -> None:
        self.states, self.name = states, name
        self.rows = [row for row, i in enumerate(states.kept) if only is None or i in only]
        self.places = [states.kept[row] for row in self.rows]
        self.sentences = [sentences[i] for i in self.places]
        self.lengths = [len(sentence) for sentence in self.sentences]

    def __len__(self) -> int:
        return len(self.sentences)

    def batch(self, indices: Sequence[int]) -> Batch:
        """Return the batch of the sentences at the given indices."""
        states, lengths = self.states.batch([self.rows[i] for i in indices])
        sentences = [self.sentences[i] for i in indices]
        longest = states.size(2)
        distances = np.zeros((len(indices), longest, longest), dtype=np.float32)
        depths = np.zeros((len(indices), longest), dtype=np.float32)
        for row, sentence in enumerate(sentences):
            gold = distance_matrix(sentence.heads)
            distances[row, : len(gold), : len(gold)] = gold
            depths[row, : len(gold)] = gold[sentence.root]
        return Batch(sentences, states, lengths, *map(torch.from_numpy, (distances, depths)))

    def in_order(self, size: int) -> Iterator[list[int]]:
        """Yield batches of indices that hold every sentence once, from the shortest on."""
        order = sorted(range(len(self)), key=self.lengths.__getitem__)
        yield from self._cut(order, size)

    def shuffled(self, size: int, rng: torch.Generator) -> Iterator[list[int]]:
        """Yield batches endlessly: shuffled epochs, with similarly long sentences in a batch."""
        while True:
            order = torch.randperm(len(self), generator=rng).tolist()
            for start in range(0, len(order), size * POOL):
                pool = sorted(order[start : start + size * POOL], key=self.lengths.__getitem__)
                batches = list(self._cut(pool, size))
                for i in torch.randperm(len(batches), generator=rng).tolist():
                    yield batches[i]

    def _cut(self, order: list[int], size: int) -> Iterator[list[int]]:
        """Cut sentences sorted by length into batches of at most ``size``."""
        remaining = iter(order)
        while batch := list(islice(remaining, size)):
            fitting = max(1, LARGEST_PAIRS // self.lengths[batch[-1]] ** 2)
            for start in range(0, len(batch), fitting):
                yield batch[start : start + fitting]
