"""Evaluate probes on a corpus and choose the best layer."""

from collections.abc import Collection, Sequence

import numpy as np
import torch

from hyptrans.support.errors import UserError
from hyptrans.support.progress import bar
from probing.probes.corpus import Corpus
from probing.probes.metrics import LONGEST, SHORTEST, Scores, Tally, kept_words
from probing.probes.probe import Probe
from probing.settings import Punctuation
from probing.text.trees import Sentence

BATCH_SIZE = 32
SELECTED_BY = {"distance": "uuas", "depth": "nspr"}
"""For each task, the metric on the development set that chooses the layer."""


@torch.no_grad()
def evaluate(
    corpus: Corpus,
    distance: Probe,
    depth: Probe,
    *,
    punct: Punctuation = "upos",
    layers: Sequence[int] | None = None,
    name: str = "",
) -> Scores:
    """Score every layer, or the given ones in their order; sentences stay in the corpus's order."""
    chosen = list(range(corpus.states.layers) if layers is None else layers)
    tally, visited = Tally(len(chosen), punct), list[int]()
    batches = list(corpus.in_order(BATCH_SIZE))
    for indices in bar(batches, f"evaluate {name}".strip(), unit=" batches"):
        batch = corpus.batch(indices)
        visited += indices
        states = batch.states[chosen]
        distances = distance.distances(states, chosen).numpy()
        depths = depth.depths(states, chosen).numpy()
        for row, sentence in enumerate(batch.sentences):
            n = len(sentence)
            tally.add(sentence, distances[:, row, :n, :n], depths[:, row, :n])
    return tally.scores().in_order(np.argsort(visited))


def check_choosable(sentences: Collection[Sentence], punct: Punctuation, name: object) -> None:
    """Check that sentences define the metrics that choose layers.

    Raises:
        UserError: they do not; names the file that holds them.
    """
    kept = ((sentence, kept_words(sentence, punct)) for sentence in sentences)
    edges = (keep[[i, j]].all() for sentence, keep in kept for i, j in sentence.edges)
    if not (any(edges) and any(SHORTEST <= len(s) <= LONGEST for s in sentences)):
        raise UserError(
            f"{name} cannot choose layers: it needs a sentence of {SHORTEST} to {LONGEST} words, "
            "and an edge between words other than punctuation"
        )


def best_layer(layers: Sequence[dict[str, float]], task: str) -> int:
    """Return the layer with the best metrics; the first of equal ones; NaN is the worst."""
    values = [metrics[SELECTED_BY[task]] for metrics in layers]
    return max(range(len(values)), key=lambda i: values[i] if values[i] == values[i] else -2.0)
