"""UUAS, Dspr, Root and Nspr of predicted distances and depths.

UUAS: share of gold edges in the minimum spanning tree of the predicted distances, without
punctuation, over all edges of the corpus. Dspr: Spearman correlation of predicted and true
distances of a word to all words, averaged over the words of a sentence, the sentences of a length,
and the lengths from 5 to 50. Root: share of sentences whose shallowest word that is no punctuation
is the root. Nspr: Spearman correlation of depths, averaged as Dspr.

Hewitt and Manning's code counts alike but for three things. What has one of seven Penn Treebank
tags is punctuation there (``ptb`` here), and what has the tag PUNCT in UPOS here unless asked
otherwise: on the test set of UD English EWT this moves UUAS of a chain from 0.4299 to 0.4305, and
Root of right-branching trees from 28.0 to 29.3 %. Gold edges are there the minimum spanning tree of
the gold distances over the words kept, and here the tree's own edges with both ends kept. The two
differ where words hang on punctuation: in no sentence of EWT with ``upos``, and in one of its test
set with ``ptb`` (20,087 edges there, 20,086 here). An undefined correlation makes their average
undefined, and is left out of ours.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from scipy.stats import rankdata  # type: ignore[import-untyped]

from hyptrans.support.errors import UserError
from probing.text.trees import Sentence, distance_matrix, minimum_spanning_edges

Punctuation = Literal["upos", "ptb"]
PUNCTUATIONS: tuple[Punctuation, ...] = get_args(Punctuation)
PTB_TAGS = frozenset(["''", ",", ".", ":", "``", "-LRB-", "-RRB-"])
SHORTEST, LONGEST = 5, 50
"""Lengths of the sentences that correlations are averaged over."""


def kept_words(sentence: Sentence, punct: Punctuation = "upos") -> np.ndarray:
    """Which words are no punctuation.

    Shapes: -> ``[n]``, bool.

    Raises:
        UserError: Penn Treebank tags are asked for and the trees have none.
    """
    if punct == "upos":
        return np.array([tag != "PUNCT" for tag in sentence.upos])
    if set(sentence.xpos) == {"_"}:
        raise UserError(
            f"--punct ptb needs tags in the column XPOS and sentence {sentence.id} has none; "
            "use --punct upos"
        )
    return np.array([tag not in PTB_TAGS for tag in sentence.xpos])


def predicted_root(depths: np.ndarray, keep: np.ndarray) -> int:
    """The first of the shallowest words that are no punctuation, or of all where all are."""
    return int(np.argmin(np.where(keep, depths, np.inf) if keep.any() else depths))


def spearman(predicted: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Spearman correlations along the last dimension; NaN where a row is constant.

    Shapes: predicted ``[..., n]``, gold broadcasts against it -> ``[...]``.
    """
    x, y = rankdata(predicted, axis=-1), rankdata(gold, axis=-1)
    # ranks average to this whatever their ties
    middle = (predicted.shape[-1] + 1) / 2
    x, y = x - middle, y - middle
    scale = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    # ranks are halves of whole numbers, so a constant row is exactly zero
    with np.errstate(invalid="ignore"):
        correlations: np.ndarray = (x * y).sum(-1) / scale
    return correlations


@dataclass
class Tally:
    """The sums behind the metrics of several layers at once, filled sentence by sentence.

    Args:
        layers: number of predictions that every sentence comes with.
        punct: what tells punctuation.
    """

    layers: int
    punct: Punctuation = "upos"
    edges: int = 0
    sentences: int = 0
    _correct: np.ndarray = field(init=False)
    _roots: np.ndarray = field(init=False)
    _by_length: dict[str, dict[int, list[np.ndarray]]] = field(init=False)

    def __post_init__(self) -> None:
        self._correct = np.zeros(self.layers, dtype=np.int64)
        self._roots = np.zeros(self.layers, dtype=np.int64)
        self._by_length = {"dspr": defaultdict(list), "nspr": defaultdict(list)}

    def add(self, sentence: Sentence, distances: np.ndarray, depths: np.ndarray) -> None:
        """Count one sentence.

        Shapes: distances ``[layers, n, n]``, depths ``[layers, n]``.

        Raises:
            UserError: a prediction is not a finite number.
        """
        if not (np.isfinite(distances).all() and np.isfinite(depths).all()):
            raise UserError(
                f"a probe gives no finite numbers for sentence {sentence.id}; "
                "train it again with a lower --lr"
            )
        keep = kept_words(sentence, self.punct)
        gold = distance_matrix(sentence.heads)
        gold_edges = {(i, j) for i, j in sentence.edges if keep[i] and keep[j]}
        self.edges += len(gold_edges)
        self.sentences += 1
        for layer in range(self.layers):
            if gold_edges:
                predicted = minimum_spanning_edges(distances[layer], keep)
                self._correct[layer] += len(gold_edges & predicted)
            self._roots[layer] += predicted_root(depths[layer], keep) == sentence.root
        if SHORTEST <= len(sentence) <= LONGEST:
            rows = spearman(distances, gold)
            self._by_length["dspr"][len(sentence)].append(_mean(rows))
            self._by_length["nspr"][len(sentence)].append(spearman(depths, gold[sentence.root]))

    def metrics(self) -> list[dict[str, float]]:
        """For every layer the metrics from 0 to 1 (correlations from -1); NaN where undefined."""
        averaged = {name: self._average(name) for name in self._by_length}
        return [
            {
                "uuas": int(self._correct[layer]) / self.edges if self.edges else math.nan,
                "dspr": float(averaged["dspr"][layer]),
                "root": int(self._roots[layer]) / self.sentences if self.sentences else math.nan,
                "nspr": float(averaged["nspr"][layer]),
            }
            for layer in range(self.layers)
        ]

    def _average(self, name: str) -> np.ndarray:
        """Over the sentences of a length, then over lengths, leaving out what is undefined."""
        groups = self._by_length[name].values()
        means = [_mean(np.stack(sentences, axis=-1)) for sentences in groups]
        return _mean(np.stack(means, axis=-1)) if means else np.full(self.layers, np.nan)


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean along the last dimension of what is not NaN; NaN where nothing is."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = np.where(defined, values, 0).sum(-1) / defined.sum(-1)
    return mean
