"""The words of trees to look at, with the states of an encoder."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from probing.geometry.layers import Words
from probing.settings import SENTENCES
from probing.states.encoder import WordEncoder
from probing.states.extract import align_sentence
from probing.states.file import States
from probing.text.trees import Sentence, depths


def words_of(
    states: States, trees: Sequence[Sentence], encoder: WordEncoder, most: int = SENTENCES
) -> Words:
    """The words of one token of the first sentences that have states.

    Others are left out: their states are means of those of their tokens, which lie nearer to the
    origin than these do, also where all of an encoder's own states lie on one sphere.

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


def _whole(encoder: WordEncoder, sentence: Sentence) -> Tensor:
    """Which words of a sentence are one token, ``[words]``."""
    aligned = align_sentence(encoder, sentence)
    assert not isinstance(aligned, str), "it has states"
    tokens = np.bincount(aligned.words, minlength=aligned.count)
    return torch.from_numpy(tokens == 1)
