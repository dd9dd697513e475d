"""Baselines for probes: trees that do not depend on the words.

In both, each word is linked to its neighbours. The right-branching tree has the first word as its
root; the linear chain has no root.
"""

import math
from collections.abc import Sequence

import numpy as np

from probing.probes.metrics import Scores, Tally
from probing.settings import Punctuation
from probing.text.trees import Sentence

BASELINES = CHAIN, RIGHT_BRANCHING = "linear chain", "right-branching"


def score(name: str, sentences: Sequence[Sentence], punct: Punctuation = "upos") -> Scores:
    """Score a baseline; Root and Nspr of the chain are NaN."""
    tally = Tally(1, punct)
    for sentence in sentences:
        depths = np.arange(len(sentence))
        tally.add(sentence, np.abs(depths[:, None] - depths)[None], depths[None])
    scores = tally.scores()
    if name == CHAIN:
        scores.roots[:] = scores.nspr[:] = math.nan
    return scores
