"""How an encoder uses its space, by its states of the words of trees.

Words of several tokens are left out: their states are means of those of the tokens, which lie
nearer to the origin than these do, also where all of an encoder's own states lie on one sphere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from probing.geometry.layers import Layer, Tokens, measure, verdict
from probing.states.encoder import WordEncoder
from probing.states.extract import align_sentence
from probing.states.file import States
from probing.text.trees import Sentence, depths

SENTENCES = 300


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


def words_of(
    states: States, trees: Sequence[Sentence], encoder: WordEncoder, most: int = SENTENCES
) -> Words:
    """The words of one token of the first sentences that have states.

    Args:
        states: of the trees.
        trees: all of the file that the states were extracted for.
        encoder: whose states they are; its parameters do not matter.
        most: sentences to look at.
    """
    places = range(min(len(states), most))
    chosen = [trees[states.kept[i]] for i in places]
    whole = torch.cat([_whole(encoder, sentence) for sentence in chosen])
    words = [word for sentence in chosen for word in sentence.words]
    return Words(
        torch.cat([states.sentence(i) for i in places], 1)[:, whole],
        [word for word, one in zip(words, whole.tolist(), strict=True) if one],
        torch.cat([torch.arange(len(sentence)) for sentence in chosen])[whole],
        torch.cat([depths(sentence) for sentence in chosen])[whole],
    )


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


def _whole(encoder: WordEncoder, sentence: Sentence) -> Tensor:
    """Which words of a sentence are one token, ``[words]``."""
    aligned = align_sentence(encoder, sentence)
    assert not isinstance(aligned, str), "it has states"
    tokens = np.bincount(aligned.words, minlength=aligned.count)
    return torch.from_numpy(tokens == 1)
