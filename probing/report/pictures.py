"""What the report shows of single sentences and words: predictions of the chosen layers."""

import math
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from probing.probes.corpus import Corpus
from probing.probes.metrics import Punctuation, kept_words, predicted_root
from probing.probes.training import Trained
from probing.report.data import Example, Prediction
from probing.text.trees import Sentence, depths, minimum_spanning_edges

SHORTEST, LONGEST = 6, 16
"""Lengths of the sentences that are drawn."""
WORDS = 1500
"""Most words of a model whose radii are drawn."""


def choose(sentences: Sequence[Sentence], count: int, seed: int) -> list[int]:
    """Indices of sentences to draw, from the shortest to the longest, long enough for a tree."""
    fitting = [i for i, s in enumerate(sentences) if SHORTEST <= len(s) <= LONGEST]
    fitting = fitting or list(range(len(sentences)))
    chosen = random.Random(seed).sample(fitting, min(count, len(fitting)))
    return sorted(chosen, key=lambda i: len(sentences[i]))


def example(sentence: Sentence, predictions: dict[str, Prediction], punct: Punctuation) -> Example:
    """A sentence with its gold tree beside predictions."""
    return Example(
        words=list(sentence.words),
        gold_edges=sentence.edges,
        gold_root=sentence.root,
        gold_depths=depths(sentence).tolist(),
        punctuation=[not kept for kept in kept_words(sentence, punct)],
        predictions=predictions,
    )


@torch.no_grad()
def predict(
    corpus: Corpus, index: int, trained: Trained, layers: tuple[int, int], punct: Punctuation
) -> Prediction:
    """What the probes of the chosen distance and depth layer say of one sentence."""
    batch = corpus.batch([index])
    at = [[layer] for layer in layers]
    for_distance, for_depth = (batch.states[layer] for layer in at)
    keep = kept_words(corpus.sentences[index], punct)
    distances = trained.distance.distances(for_distance, at[0])[0, 0].numpy()
    found = trained.depth.depths(for_depth, at[1])[0, 0]
    return Prediction(
        edges=sorted(minimum_spanning_edges(distances, keep)),
        depths=found.tolist(),
        root=predicted_root(found.numpy(), keep),
        distance_points=_first(trained.distance.lorentz_points(for_distance, at[0])),
    )


def _first(points: Tensor | None) -> Tensor | None:
    return None if points is None else points[0, 0]


@torch.no_grad()
def radii(corpus: Corpus, trained: Trained, layer: int, seed: int) -> list[tuple[int, float]]:
    """Gold depth of words and their points' distance from the origin; none of flat probes."""
    found: list[tuple[int, float]] = []
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)
    for index in order:
        batch = corpus.batch([index])
        points = trained.depth.lorentz_points(batch.states[[layer]], [layer])
        if points is None or len(found) >= WORDS:
            break
        origin = lorentz.origin(points.size(-1))
        lengths = lorentz.distance(points[0, 0], origin).tolist()
        found += zip(map(int, batch.depths[0].tolist()), lengths, strict=True)
    return [(depth, radius) for depth, radius in found[:WORDS] if math.isfinite(radius)]
