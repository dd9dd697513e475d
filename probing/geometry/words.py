"""The words of trees to look at, with the states of an encoder."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch

from probing.geometry.layers import Cloud
from probing.settings import SENTENCES
from probing.states.encoder import WordEncoder
from probing.states.extract import align_sentence
from probing.states.file import States
from probing.text.trees import Sentence, depths


def word_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    """How often each word stands in some trees, in lower case."""
    return Counter(word.lower() for sentence in sentences for word in sentence.words)


def words_of(
    states: States,
    trees: Sequence[Sentence],
    encoder: WordEncoder,
    counts: Counter[str],
    most: int = SENTENCES,
) -> Cloud:
    """The words of one token of the first sentences that have states.

    Others are left out: their states are means of those of their tokens, which lie nearer to the
    origin than these do, also where all of an encoder's own states lie on one sphere.

    Args:
        states: of the trees.
        trees: all of the file that the states were extracted for.
        encoder: whose states they are; its parameters do not matter.
        counts: how often words stand in a text, for their frequency.
        most: sentences to look at.
    """
    places = range(min(len(states), most))
    chosen = [trees[states.kept[i]] for i in places]
    whole = torch.cat([_whole(encoder, sentence) for sentence in chosen])
    often = [counts[word.lower()] for sentence in chosen for word in sentence.words]
    return Cloud(
        side="encoder",
        states=torch.cat([states.sentence(i) for i in places], 1)[:, whole],
        spaces=states.spaces,
        frequency=torch.tensor(often)[whole],
        position=torch.cat([torch.arange(len(sentence)) for sentence in chosen])[whole],
        depth=torch.cat([depths(sentence) for sentence in chosen])[whole],
    )


def _whole(encoder: WordEncoder, sentence: Sentence) -> torch.Tensor:
    """Which words of a sentence are one token, ``[words]``."""
    aligned = align_sentence(encoder, sentence)
    assert not isinstance(aligned, str), "it has states"
    tokens = np.bincount(aligned.words, minlength=aligned.count)
    return torch.from_numpy(tokens == 1)
