"""Batches of sentences of about the same length, and their tokens as one tensor."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hyptrans.inference.beams import Array
from hyptrans.inference.options import rounded_up
from hyptrans.support.progress import bar

if TYPE_CHECKING:
    from torch import Tensor

    from hyptrans.seq2seq.model import Words

_LONG_LIST = 200
"""From this number of sentences on, a terminal shows progress."""


def by_length(
    sizes: Sequence[int], batch_tokens: int, name: str, progress: bool | None, *, step: int = 0
) -> Iterator[list[int]]:
    """Yield batches of sentence indices, longest sentence first; skip sentences without tokens.

    Args:
        sizes: number of tokens of each sentence.
        batch_tokens: most tokens of a batch, padding included; a longer sentence goes alone.
        name: name of the work in the progress bar.
        progress: whether to show progress; by default for long lists on a terminal.
        step: if not 0, all sizes in a batch round up to the same multiple of it.
    """
    if progress is None:
        progress = len(sizes) >= _LONG_LIST and sys.stderr.isatty()
    order = sorted((i for i in range(len(sizes)) if sizes[i]), key=lambda i: (-sizes[i], i))
    batch: list[int] = []
    for i in bar(order, name, len(order), " sentences") if progress else order:
        if batch:
            longest = sizes[batch[0]]
            full = (len(batch) + 1) * longest > batch_tokens
            if full or (step and rounded_up(longest, step) > rounded_up(sizes[i], step)):
                yield batch
                batch = []
        batch.append(i)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], words: "Words", *, left: bool = False) -> "Tensor":
    """Return the tokens of sentences as a tensor, padded on the right or the left, ``[B, T]``."""
    import torch

    return torch.from_numpy(filled(rows, words, left=left))


def filled(rows: Sequence[Sequence[int]], words: "Words", *, left: bool) -> Array:
    """Return the tokens of sentences, padded on the right or the left, int64 ``[B, T]``."""
    longest, made = max(map(len, rows)), []
    for row in rows:
        padding = [words.pad()] * (longest - len(row))
        made.append([*padding, *row] if left else [*row, *padding])
    return np.array(made, dtype=np.int64)
