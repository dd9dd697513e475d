"""How an encoder uses its space, by its states of the words of trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from probing.geometry.layers import Layer, Tokens, measure, verdict
from probing.text.trees import Sentence

SENTENCES = 300
"""Looked at unless another number is wanted."""


@dataclass(frozen=True)
class SpaceUse:
    """The figures of every layer of an encoder, and the sentence that sums them up."""

    layers: list[Layer]
    verdict: str


@dataclass(frozen=True)
class Words:
    """Words of one token each, and what is known of them."""

    states: Tensor
    """``[layers, W, D]``."""
    words: list[str]
    positions: Tensor
    """``[W]``, words before in the sentence."""
    depths: Tensor
    """``[W]``, in the gold tree."""

    def __len__(self) -> int:
        return len(self.words)


def word_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    """How often each word stands in some trees, in lower case."""
    return Counter(word.lower() for sentence in sentences for word in sentence.words)


def space_use(
    words: Words, spaces: Sequence[Space], counts: Counter[str], *, seed: int
) -> SpaceUse:
    """The figures of an encoder.

    Args:
        words: one at least.
        spaces: of the layers.
        counts: how often words stand in a text, for their frequency.
        seed: of samples.
    """
    often = [counts[word.lower()] for word in words.words]
    tokens = Tokens(torch.tensor(often, dtype=torch.float64).log1p(), words.positions)
    layers = [
        measure(
            one, tokens, space, side="encoder", number=number, words=(one, words.depths), seed=seed
        )
        for number, (one, space) in enumerate(zip(words.states, spaces, strict=True))
    ]
    return SpaceUse(layers, verdict(layers))
