"""Select the words of trees whose encoder states the geometry is measured on."""

from collections import Counter
from collections.abc import Sequence

import torch

from probing.geometry.layers import Cloud
from probing.settings import SENTENCES
from probing.states.encoder import WordEncoder
from probing.states.extract import align_sentence
from probing.states.file import States
from probing.text.trees import Sentence, distance_matrix


def word_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    """Count how often each lower-cased word occurs in some trees."""
    return Counter(word.lower() for sentence in sentences for word in sentence.words)


def words_of(
    states: States, trees: Sequence[Sentence], encoder: WordEncoder, counts: Counter[str]
) -> Cloud:
    """Return the single-token words of the first 300 sentences that have states.

    Words of several tokens are left out: the mean of their tokens' states lies nearer to the origin
    than these states, even if all of an encoder's own states lie on one sphere.

    ``trees`` are those of the whole file, ``encoder`` made the states (its parameters do not
    matter), and ``counts`` gives the words' frequency.
    """
    places = range(min(len(states), SENTENCES))
    chosen = [trees[states.kept[i]] for i in places]
    whole = torch.cat([_whole(encoder, sentence) for sentence in chosen])
    # edges to the root
    depths = [torch.from_numpy(distance_matrix(one.heads)[one.root]) for one in chosen]
    often = [counts[word.lower()] for sentence in chosen for word in sentence.words]
    return Cloud(
        side="encoder",
        states=torch.cat([states.sentence(i) for i in places], 1)[:, whole],
        spaces=states.spaces,
        frequency=torch.tensor(often)[whole],
        position=torch.cat([torch.arange(len(sentence)) for sentence in chosen])[whole],
        depth=torch.cat(depths)[whole],
    )


def _whole(encoder: WordEncoder, sentence: Sentence) -> torch.Tensor:
    """Tell which words of a sentence are one token, ``[words]``, bool."""
    aligned = align_sentence(encoder, sentence)
    assert not isinstance(aligned, str), "it has states"
    return torch.bincount(aligned.words) == 1
