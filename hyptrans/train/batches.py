"""Batches of an indexed data set: sentence pairs of similar lengths, bounded in size."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from hyptrans.data.indexed import IndexedSet
from hyptrans.support.errors import UserError
from hyptrans.transformers.model import IGNORED

MULTIPLE = 8
"""The number of sentences of a large batch is divisible by it."""


class Pairs(Dataset[dict[str, Tensor]]):
    """Sources and targets of one set, each with its end-of-sentence symbol.

    Args:
        prefix: path of the set's files up to the language, such as ``data-bin/train.en-de``.
        languages: source and target.
        model: leaves out pairs that its encoder or decoder cannot take.

    Raises:
        UserError: a file is missing or damaged, the numbers of sentences of both sides differ, or
            no pair is left.

    Attributes:
        sizes: ``(pairs, 2)`` tokens of source and target.
        kept: place of each pair among all.
        skipped: number of pairs left out because they are too long for the model.
    """

    def __init__(self, prefix: Path, languages: Sequence[str], model: Any) -> None:
        paths = [prefix.with_name(f"{prefix.name}.{language}") for language in languages]
        sources, targets = map(IndexedSet, paths)
        if len(sources) != len(targets):
            raise UserError(
                f"{len(sources)} sources and {len(targets)} targets do not pair up: prepare the "
                "data again"
            )
        every = np.stack([sources.sizes, targets.sizes], 1).astype(np.int64)
        longest = (model.encoder.longest, model.decoder.longest)
        kept = np.flatnonzero((every <= longest).all(1))
        if not len(kept):
            raise UserError(f"{prefix} has no pair that the model can take")
        self.sources, self.targets, self.kept = sources, targets, kept
        self.sizes, self.skipped = every[kept], len(every) - len(kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        place = int(self.kept[index])
        source, target = (torch.as_tensor(side[place]) for side in (self.sources, self.targets))
        return {"input_ids": source, "labels": target}


class TokenBatches:
    """Batches of pairs of similar lengths, in an order that depends on seed and epoch.

    A batch has at most ``max_tokens`` tokens on either side, padding included, as with fairseq's
    ``--max-tokens``. In every epoch the number of batches is a multiple of ``parts``, the processes
    times the accumulated batches; the few surplus ones, different in each epoch, are left out.

    Shapes: ``sizes``, the tokens of source and target, ``(pairs, 2)``.
    """

    def __init__(self, sizes: np.ndarray, max_tokens: int, seed: int, parts: int = 1) -> None:
        self.seed, self.epoch, self.parts = seed, 0, parts
        order = np.random.default_rng(seed).permutation(len(sizes))
        order = order[np.lexsort((sizes[order, 0], sizes[order, 1]))]
        self._batches = list(_by_size(order, sizes.max(1), max_tokens))

    def set_epoch(self, epoch: int) -> None:
        """Shuffle the batches anew; the library calls this before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return max(len(self._batches) // self.parts, 1) * self.parts

    def __iter__(self) -> Iterator[list[int]]:
        shuffled = np.random.default_rng((self.seed, self.epoch)).permutation(len(self._batches))
        # if there are fewer batches than ``parts``, some are used twice
        for place in np.resize(shuffled, len(self)):
            yield self._batches[place]


def _by_size(order: np.ndarray, longest: np.ndarray, max_tokens: int) -> Iterator[list[int]]:
    """Yield consecutive pairs of an order, as many at a time as fit."""
    batch: list[int] = []
    width = 0
    for index in order.tolist():
        wider = max(width, int(longest[index]))
        if batch and wider * (len(batch) + 1) > max_tokens:
            full = len(batch) - len(batch) % MULTIPLE if len(batch) > MULTIPLE else len(batch)
            yield batch[:full]
            batch = batch[full:]
            wider = max([int(longest[i]) for i in batch] + [int(longest[index])])
        batch.append(index)
        width = wider
    if batch:
        yield batch


def collate(rows: Sequence[dict[str, Tensor]], pad: int) -> dict[str, Tensor]:
    """Pad sources on the left, as fairseq does, and targets on the right.

    Shapes: ``input_ids`` ``(batch, source length)``, ``labels`` ``(batch, target length)`` with
    :data:`IGNORED` at padding.
    """
    sources, targets = ([row[key] for row in rows] for key in ("input_ids", "labels"))
    padded = torch.nn.utils.rnn.pad_sequence
    return {
        "input_ids": padded([one.flip(0) for one in sources], True, pad).flip(1),
        "labels": padded(targets, True, IGNORED),
    }
