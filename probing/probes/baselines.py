"""Trees drawn without looking at the words, which probes are held against."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from probing.probes.metrics import Scores, Tally
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
