"""Baselines for probes: trees that do not depend on the words."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from probing.probes.metrics import Scores, Tally
from probing.settings import Punctuation
from probing.text.trees import Sentence, distance_matrix

CHAIN, RIGHT_BRANCHING = "linear chain", "right-branching"


def chain(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and depths of a chain of neighbours; it has no root: all depths are equal.

    Shapes: -> ``[n, n]``, ``[n]``.
    """
    positions = np.arange(n)
    return np.abs(positions[:, None] - positions), np.zeros(n)


def right_branching(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and depths if the first word is the root and others depend on the previous.

    Shapes: -> ``[n, n]``, ``[n]``.
    """
    distances = distance_matrix(tuple(range(-1, n - 1)))
    return distances, distances[0]


BASELINES: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    CHAIN: chain,
    RIGHT_BRANCHING: right_branching,
}


def score(name: str, sentences: Sequence[Sentence], punct: Punctuation = "upos") -> Scores:
    """Score a baseline; Root and Nspr of the chain are NaN."""
    tally = Tally(1, punct)
    for sentence in sentences:
        distances, depths = BASELINES[name](len(sentence))
        tally.add(sentence, distances[None], depths[None])
    scores = tally.scores()
    if name == CHAIN:
        # the first of equal depths says nothing about a root
        scores.roots[:] = math.nan
    return scores
