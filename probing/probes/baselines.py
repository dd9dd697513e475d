"""What probes are held against: trees drawn without looking at the words, and control trees.

Control trees are of the same shape over the same words, which stand at other places in them. A
probe that is trained and scored on them shows what its own capacity and the shape of trees alone
give. Hewitt and Liang (2019) control probes of labels alike, by labels that are drawn.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from probing.probes.metrics import Scores, Tally, kept_words
from probing.settings import Punctuation
from probing.text.trees import Sentence, distance_matrix

CHAIN, RIGHT_BRANCHING = "linear chain", "right-branching"


def chain(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Every word next to the one before; a chain has no root, so all depths are the same.

    Shapes: -> ``[n, n]``, ``[n]``.
    """
    positions = np.arange(n)
    return np.abs(positions[:, None] - positions), np.zeros(n)


def right_branching(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The chain as a tree: every word depends on the one before, the first is the root.

    Shapes: -> ``[n, n]``, ``[n]``.
    """
    distances = distance_matrix(tuple(range(-1, n - 1)))
    return distances, distances[0]


BASELINES: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    CHAIN: chain,
    RIGHT_BRANCHING: right_branching,
}


def score(name: str, sentences: Sequence[Sentence], punct: Punctuation = "upos") -> Scores:
    """The scores of a baseline; Root and Nspr of the chain are NaN."""
    tally = Tally(1, punct)
    for sentence in sentences:
        distances, depths = BASELINES[name](len(sentence))
        tally.add(sentence, distances[None], depths[None])
    scores = tally.scores()
    if name == CHAIN:
        # which of equal depths comes first says nothing of a root
        scores.roots[:] = math.nan
    return scores


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
