"""Sentences of about the same length together, and their tokens as one tensor."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hyptrans.inference.options import rounded_up
from hyptrans.support.progress import bar

if TYPE_CHECKING:
    from torch import Tensor

    from hyptrans.seq2seq.model import Words

_LONG_LIST = 200
"""Sentences from which on a terminal is shown how many are done."""


def by_length(
    sizes: Sequence[int], batch_tokens: int, name: str, progress: bool | None, *, step: int = 0
) -> Iterator[list[int]]:
    """Places of sentences, longest first, those of no tokens left out.

    Args:
        sizes: tokens of each sentence.
        batch_tokens: most tokens of a batch, padding included; a longer sentence goes alone.
        name: what is done, for who watches.
        progress: show how far it is; by default for long lists on a terminal.
        step: with it a batch has only sentences whose sizes round up to the same multiple of it.
    """
    if progress is None:
        progress = len(sizes) >= _LONG_LIST and sys.stderr.isatty()
    order = sorted((i for i in range(len(sizes)) if sizes[i]), key=lambda i: (-sizes[i], i))
    batch: list[int] = []
    for i in bar(order, name, len(order), " sentences") if progress else order:
        # the first is the longest
        full = batch and (len(batch) + 1) * sizes[batch[0]] > batch_tokens
        if full or (
            batch and step and rounded_up(sizes[batch[0]], step) > rounded_up(sizes[i], step)
        ):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], words: "Words", *, left: bool = False) -> "Tensor":
    """Tokens of sentences, padded on the right or the left, ``[B, T]``."""
    import torch

    return torch.tensor(filled(rows, words, left=left), dtype=torch.long)


def filled(rows: Sequence[Sequence[int]], words: "Words", *, left: bool) -> list[list[int]]:
    """Rows of one length, with padding on the right or the left."""
    longest, made = max(map(len, rows)), []
    for row in rows:
        padding = [words.pad()] * (longest - len(row))
        made.append([*padding, *row] if left else [*row, *padding])
    return made
