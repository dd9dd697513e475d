"""Control trees: of the same shape over the same words, which stand at other places in it.

What a probe reads out of states that do not know a tree: trained on control trees and scored on
them, it shows what its own capacity and the shape of trees alone give. Hewitt and Liang (2019)
control probes of labels alike, by labels that are drawn.
"""

import random
from dataclasses import replace

import numpy as np

from probing.probes.metrics import Punctuation, kept_words
from probing.text.trees import Sentence


def shuffled(sentence: Sentence, seed: int, punct: Punctuation = "upos") -> Sentence:
    """The sentence with its words, but for punctuation, at shuffled places of its tree.

    Depths, distances and the number of edges that metrics count stay what they were, as multisets.
    The same sentence and seed always give the same tree.

    Raises:
        UserError: Penn Treebank tags are asked for and the trees have none.
    """
    movable = np.flatnonzero(kept_words(sentence, punct)).tolist()
    rng = random.Random(f"{seed} {' '.join(sentence.words)}")
    place = list(range(len(sentence)))
    for old, new in zip(movable, rng.sample(movable, len(movable)), strict=True):
        place[old] = new
    heads = [-1] * len(sentence)
    for word, head in enumerate(sentence.heads):
        heads[place[word]] = place[head] if head >= 0 else -1
    return replace(sentence, heads=tuple(heads))
