"""UUAS, Dspr, Root and Nspr of predicted distances and depths.

UUAS: share of the corpus's gold edges, without punctuation, that are in the minimum spanning tree
of the predicted distances. Dspr: Spearman correlation of predicted and true distances of a word to
all words, averaged over the words of a sentence, the sentences of a length, and the lengths from 5
to 50. Root: share of sentences whose shallowest non-punctuation word is the root. Nspr: Spearman
correlation of depths, averaged like Dspr.

Hewitt and Manning's code differs in three points. (1) It takes words with one of seven Penn
Treebank tags as punctuation (``ptb`` here); the default here is the tag PUNCT in UPOS. On the test
set of UD English EWT this moves UUAS of a chain from 0.4299 to 0.4305, and Root of right-branching
trees from 28.0 to 29.3 %. (2) Its gold edges are the minimum spanning tree of the gold distances
over the kept words; here they are the tree's own edges with both ends kept. The two differ where
words depend on punctuation: in no sentence of EWT with ``upos``, and in one of its test set with
``ptb`` (20,087 edges there, 20,086 here). (3) One undefined correlation makes its average
undefined; ours leaves undefined ones out.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata  # type: ignore[import-untyped]

from hyptrans.support.errors import UserError
from probing.settings import Punctuation
from probing.text.trees import Sentence, distance_matrix, minimum_spanning_edges

PTB_TAGS = frozenset(["''", ",", ".", ":", "``", "-LRB-", "-RRB-"])
METRICS = ("uuas", "dspr", "root", "nspr")
"""Keys of the metrics; the distance probe has the first two, the depth probe the others."""
ARC_LENGTHS = (1, 2, 3, 4, 6, 10)
"""Least lengths, in words, of the classes of gold edges that have a UUAS of their own."""
_BY_LAYER = ("found", "roots", "dspr", "nspr")
"""The fields of :class:`Scores` with one row per layer."""
SHORTEST, LONGEST = 5, 50
"""Sentences of these lengths, in words, count for the correlations."""


def kept_words(sentence: Sentence, punct: Punctuation = "upos") -> np.ndarray:
    """Tell which words are not punctuation.

    Shapes: -> ``[n]``, bool.

    Raises:
        UserError: the sentence has no tags to recognize punctuation by.
    """
    if punct == "none":
        return np.ones(len(sentence), bool)
    tags, marks = (sentence.upos, ("PUNCT",)) if punct == "upos" else (sentence.xpos, PTB_TAGS)
    if set(tags) == {"_"}:
        column = "UPOS" if punct == "upos" else "XPOS"
        raise UserError(
            f"--punct {punct} needs tags in the column {column} and sentence {sentence.id} has "
            f"none; use --punct {'ptb' if punct == 'upos' else 'upos'}, or none to count "
            "punctuation"
        )
    return np.array([tag not in marks for tag in tags])


def predicted_root(depths: np.ndarray, keep: np.ndarray) -> int:
    """Return the first of the shallowest words to keep, or of all words if none is to be kept."""
    return int(np.argmin(np.where(keep, depths, np.inf) if keep.any() else depths))


def spearman(predicted: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return Spearman correlations along the last dimension; NaN where a row is constant.

    Shapes: predicted ``[..., n]``, gold broadcasts against it -> ``[...]``.
    """
    x, y = rankdata(predicted, axis=-1), rankdata(gold, axis=-1)
    # the mean rank, with or without ties
    middle = (predicted.shape[-1] + 1) / 2
    x, y = x - middle, y - middle
    scale = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    # ranks are multiples of 0.5, so a constant row becomes exactly zero
    with np.errstate(invalid="ignore"):
        correlations: np.ndarray = (x * y).sum(-1) / scale
    return correlations


@dataclass(frozen=True)
class Scores:
    """Scores of every sentence for several predictions (layers) at once.

    Attributes:
        lengths: number of words of each sentence, ``[S]``.
        arcs: number of gold edges without punctuation by :data:`ARC_LENGTHS`, ``[S, classes]``.
        found: number of those predicted, ``[layers, S, classes]``; a mean if runs were averaged.
        roots: whether the predicted root is right, ``[layers, S]``.
        dspr: Spearman correlation of distances, NaN where undefined, ``[layers, S]``.
        nspr: Spearman correlation of depths, likewise.
    """

    lengths: np.ndarray
    arcs: np.ndarray
    found: np.ndarray
    roots: np.ndarray
    dspr: np.ndarray
    nspr: np.ndarray

    @property
    def edges(self) -> np.ndarray:
        """Return the number of gold edges of each sentence, ``[S]``."""
        return self.arcs.sum(-1)

    @property
    def correct(self) -> np.ndarray:
        """Return the number of correctly predicted edges, ``[layers, S]``."""
        return self.found.sum(-1)

    def of(self, distance_layer: int, depth_layer: int) -> "Scores":
        """Return scores of one row: UUAS and Dspr of one layer, Root and Nspr of another."""
        d, e = [distance_layer], [depth_layer]
        rows = {"found": self.found[d], "dspr": self.dspr[d]}
        return replace(self, **rows, roots=self.roots[e], nspr=self.nspr[e])

    def in_order(self, places: np.ndarray) -> "Scores":
        """Return the scores with the sentences in the order of ``places``, ``[S]``."""
        rows = {name: getattr(self, name)[:, places] for name in _BY_LAYER}
        return replace(self, lengths=self.lengths[places], arcs=self.arcs[places], **rows)

    def by_arc(self) -> np.ndarray:
        """Return UUAS by :data:`ARC_LENGTHS`, ``[layers, classes]``; NaN without edges."""
        with np.errstate(invalid="ignore"):
            shares: np.ndarray = self.found.sum(1) / self.arcs.sum(0)
        return shares

    def metrics(self) -> list[dict[str, float]]:
        """Return every layer's metrics, from 0 to 1 (correlations from -1); NaN if undefined."""
        parts = {metric: self.parts(metric) for metric in METRICS}
        layers = range(len(self.correct))
        return [{metric: float(parts[metric][layer]) for metric in METRICS} for layer in layers]

    def parts(self, metric: str) -> np.ndarray:
        """Return one metric of every layer, ``[layers]``; NaN if undefined."""
        added = self.contributions(metric)
        return np.where(np.isnan(added).all(-1), math.nan, np.nansum(added, -1))

    def contributions(self, metric: str, used: np.ndarray | None = None) -> np.ndarray:
        """Return what each sentence adds to a metric, which is their sum.

        A correlation is averaged over the sentences of each length, then over lengths.

        Shapes: used ``[S]``, bool, the sentences to average; by default those with a defined value
        -> ``[layers, S]``, NaN for other sentences.
        """
        if metric in ("uuas", "root"):
            values = self.correct if metric == "uuas" else self.roots
            whole = self.edges.sum() if metric == "uuas" else len(self.lengths)
            return values / whole if whole else np.full(values.shape, math.nan)
        added = np.full(getattr(self, metric).shape, math.nan)
        for row, values in zip(added, getattr(self, metric), strict=True):
            defined = ~np.isnan(values) if used is None else used
            lengths = self.lengths[defined]
            found, place, counts = np.unique(lengths, return_inverse=True, return_counts=True)
            row[defined] = values[defined] / counts[place] / len(found)
        return added


def mean_scores(several: Sequence[Scores]) -> Scores:
    """Average the scores of several runs on the same sentences, sentence by sentence.

    A correlation that is undefined in one run has no average.
    """
    rows = {name: [getattr(scores, name) for scores in several] for name in _BY_LAYER}
    return replace(several[0], **{name: np.mean(row, axis=0) for name, row in rows.items()})


@dataclass
class Tally:
    """Collects the scores of a number of layers, sentence by sentence."""

    layers: int
    punct: Punctuation = "upos"
    _rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, sentence: Sentence, distances: np.ndarray, depths: np.ndarray) -> None:
        """Score one sentence.

        Shapes: distances ``[layers, n, n]``, depths ``[layers, n]``.

        Raises:
            UserError: a prediction is not finite.
        """
        if not (np.isfinite(distances).all() and np.isfinite(depths).all()):
            raise UserError(
                f"a probe gives no finite numbers for sentence {sentence.id}; "
                "train it again with a lower --lr"
            )
        keep = kept_words(sentence, self.punct)
        gold = distance_matrix(sentence.heads)
        gold_edges = {(i, j) for i, j in sentence.edges if keep[i] and keep[j]}
        found = [_classes(gold_edges & minimum_spanning_edges(one, keep)) for one in distances]
        roots = [float(predicted_root(one, keep) == sentence.root) for one in depths]
        dspr = nspr = np.full(self.layers, np.nan)
        if SHORTEST <= len(sentence) <= LONGEST:
            dspr = _mean(spearman(distances, gold))
            nspr = spearman(depths, gold[sentence.root])
        arcs = _classes(gold_edges)
        self._rows.append((len(sentence), arcs, np.array(found), np.array(roots), dspr, nspr))

    def scores(self) -> Scores:
        """Return the scores of all sentences added; there must be at least one."""
        lengths, arcs, *values = zip(*self._rows, strict=True)
        return Scores(np.array(lengths), np.array(arcs), *(np.stack(part, 1) for part in values))


def _classes(edges: Collection[tuple[int, int]]) -> np.ndarray:
    """Count the edges of each length class, ``[classes]``."""
    numbers = np.digitize([j - i for i, j in edges], ARC_LENGTHS)
    return np.bincount(numbers, minlength=len(ARC_LENGTHS) + 1)[1:]


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of the defined values along the last dimension; NaN if there are none."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = np.where(defined, values, 0).sum(-1) / defined.sum(-1)
    return mean
