"""How an encoder uses its space, by its states of the words of trees."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probing.geometry.layers import Layer, Tokens, measure, verdict
from probing.states.file import States
from probing.text.trees import Sentence, depths

SENTENCES = 300


@dataclass(frozen=True)
class SpaceUse:
    """The figures of every layer of an encoder, and the sentence that sums them up."""

    layers: list[Layer]
    verdict: str


def word_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    """How often each word stands in some trees, in lower case."""
    return Counter(word.lower() for sentence in sentences for word in sentence.words)


def words_of(states: States, trees: Sequence[Sentence], most: int) -> tuple[Tensor, list[Sentence]]:
    """States of the words of the first sentences that have some, and these sentences.

    Shapes: -> ``[layers, W, D]``. ``trees`` are all of the file that the states are of.
    """
    places = range(min(len(states), most))
    points = torch.cat([states.sentence(i) for i in places], 1)
    return points, [trees[states.kept[i]] for i in places]


def space_use(
    states: States, trees: Sequence[Sentence], counts: Counter[str], *, seed: int
) -> SpaceUse:
    """The figures of an encoder.

    Args:
        states: of the trees, of which the first :data:`SENTENCES` are looked at.
        trees: all of the file that the states were extracted for.
        counts: how often words stand in a text, for their frequency.
        seed: of samples.
    """
    points, chosen = words_of(states, trees, SENTENCES)
    often = [counts[word.lower()] for sentence in chosen for word in sentence.words]
    tokens = Tokens(
        torch.tensor(often, dtype=torch.float64).log1p(),
        torch.cat([torch.arange(len(sentence)) for sentence in chosen]),
    )
    gold = torch.cat([depths(sentence) for sentence in chosen])
    layers = [
        measure(one, tokens, space, side="encoder", number=number, words=(one, gold), seed=seed)
        for number, (one, space) in enumerate(zip(points, states.spaces, strict=True))
    ]
    return SpaceUse(layers, verdict(layers))
