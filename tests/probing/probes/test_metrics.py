"""Metrics against hand-computed trees, networkx and scipy's Spearman correlation."""

import math
import warnings
from statistics import fmean

import networkx as nx
import numpy as np
import pytest
from scipy.stats import spearmanr

from hyptrans.support.errors import UserError
from probing.probes import metrics
from probing.probes.metrics import PTB_TAGS, Tally, kept_words, predicted_root
from probing.text.trees import distance_matrix, minimum_spanning_edges
from tests.probing.helpers.model import real_test_set
from tests.probing.helpers.trees import random_heads, sentence_of

FIVE = sentence_of((1, -1, 1, 2, 1), upos=["NOUN", "VERB", "NOUN", "ADJ", "PUNCT"])
"""w0 <- w1 -> w2 -> w3, w1 -> w4 (a full stop)."""


def chain(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def score(sentence, distances, depths, punct="upos"):
    tally = Tally(1, punct)
    tally.add(sentence, np.asarray(distances, float)[None], np.asarray(depths, float)[None])
    return tally.scores().metrics()[0]


def gold_of(sentence):
    distances = distance_matrix(sentence.heads)
    return distances, distances[sentence.root]


def corpus(seed, sizes=range(1, 60, 3), punctuated=0.2):
    """Random trees whose punctuation is leaves, random predictions with ties."""
    rng = np.random.default_rng(seed)
    for k, n in enumerate(sizes):
        heads = random_heads(n, seed=1000 * seed + k)
        upos = [
            "PUNCT" if i not in heads and heads[i] >= 0 and rng.random() < punctuated else "NOUN"
            for i in range(n)
        ]
        distances = rng.integers(0, 6, (2, n, n)).astype(float)
        distances = distances + distances.transpose(0, 2, 1)
        for layer in distances:
            np.fill_diagonal(layer, 0)
        yield sentence_of(heads, upos), distances, rng.integers(0, 5, (2, n)).astype(float)


def test_scores_of_a_chain_match_hand_computed_ones():
    # kept edges: 01, 12, 23; the chain over the kept words 0 to 3 has them all
    metrics = score(FIVE, chain(5), np.arange(5))
    assert metrics["uuas"] == 1.0
    assert metrics["root"] == 0.0
    # ranks of the gold depths (1, 0, 1, 2, 1) are 3, 1, 3, 5, 3: covariance 4, variances 8 and 10
    assert metrics["nspr"] == pytest.approx(4 / math.sqrt(8 * 10))
    gold = distance_matrix(FIVE.heads)
    rows = [spearmanr(chain(5)[i], gold[i]).statistic for i in range(5)]
    assert metrics["dspr"] == pytest.approx(fmean(rows))


def test_only_correlations_count_punctuation():
    distances, depths = gold_of(FIVE)
    distances, depths = distances.astype(float), depths.astype(float)
    # the full stop next to everything, and shallowest
    distances[4, :] = distances[:, 4] = -1
    depths[4] = -1
    metrics = score(FIVE, distances, depths)
    assert metrics["uuas"] == metrics["root"] == 1.0
    assert metrics["dspr"] < 1
    assert metrics["nspr"] < 1


def hewitt_and_manning_edges(sentence, punct):
    """Their gold edges: the minimum spanning tree of the gold distances over the words kept."""
    return minimum_spanning_edges(distance_matrix(sentence.heads), kept_words(sentence, punct))


def test_words_headed_by_punctuation_have_no_gold_edge():
    # w0 <- w1 (a dash) -> w2 -> w3
    sentence = sentence_of((1, -1, 1, 2), upos=["NOUN", "PUNCT", "NOUN", "NOUN"])
    assert hewitt_and_manning_edges(sentence, "upos") == {(0, 2), (2, 3)}
    tally = Tally(1)
    tally.add(sentence, *(values[None] for values in gold_of(sentence)))
    assert tally.scores().edges.sum() == 1
    # the chain has w2 - w3 and nothing else that counts
    assert score(sentence, chain(4), np.zeros(4))["uuas"] == 1.0


@pytest.mark.parametrize(
    ("punct", "edges", "others", "uuas", "root"),
    [("upos", 19952, 0, 0.4305, 0.293), ("ptb", 20086, 1, 0.4299, 0.280)],
)
def test_ewt_differs_from_hewitt_and_manning_as_the_docstring_says(
    monkeypatch, punct, edges, others, uuas, root
):
    monkeypatch.setattr(metrics, "LONGEST", 0)  # correlations take long
    tally, theirs = Tally(1, punct), 0
    for sentence in real_test_set():
        n = len(sentence)
        tally.add(sentence, chain(n)[None], np.arange(n)[None])
        theirs += len(hewitt_and_manning_edges(sentence, punct))
    (found,) = tally.scores().metrics()
    assert (tally.scores().edges.sum(), theirs) == (edges, edges + others)
    assert (round(found["uuas"], 4), round(found["root"], 3)) == (uuas, root)


def test_edges_are_grouped_by_their_length_in_words():
    # edges of 1, 2, 4 and 11 words; the chain has the first one, the star below has all but that
    sentence = sentence_of((-1, 0, 0, 2, 0, 4, 5, 6, 7, 8, 9, 0), ["X"] * 3 + ["PUNCT"] + ["X"] * 8)
    star = 2.0 - np.eye(12) - (np.arange(12) == 0)[None] - (np.arange(12) == 0)[:, None]
    tally = Tally(2)
    for _ in range(3):
        tally.add(sentence, np.stack([chain(12), star]), np.zeros((2, 12)))
    scores = tally.scores()
    assert scores.arcs.sum(0).tolist() == [3 * count for count in (7, 1, 0, 1, 0, 1)]
    shares = [[1.0, 0.0, math.nan, 0.0, math.nan, 0.0], [1 / 7, 1.0, math.nan, 1.0, math.nan, 1.0]]
    np.testing.assert_allclose(scores.by_arc(), shares)


@pytest.mark.parametrize("seed", range(2))
def test_corpus_scores_match_loops_over_networkx_and_scipy(seed):
    tally, layers = Tally(2), [Reference(), Reference()]
    for sentence, distances, depths in corpus(seed):
        tally.add(sentence, distances, depths)
        for layer, reference in enumerate(layers):
            reference.add(sentence, distances[layer], depths[layer])
    for found, reference in zip(tally.scores().metrics(), layers, strict=True):
        assert found == pytest.approx(reference.metrics())


class Reference:
    """The metrics by their definitions, word by word."""

    def __init__(self):
        self.edges, self.correct, self.roots, self.sentences = 0, 0, 0, 0
        self.dspr, self.nspr = {}, {}

    def add(self, sentence, distances, depths):
        n = len(sentence.words)
        keep = [i for i in range(n) if sentence.upos[i] != "PUNCT"]
        tree = nx.Graph([(i, h) for i, h in enumerate(sentence.heads) if h >= 0])
        tree.add_nodes_from(range(n))
        complete = nx.Graph()
        complete.add_weighted_edges_from(
            (i, j, distances[i, j]) for i in keep for j in keep if i < j
        )
        found = {frozenset(e) for e in nx.minimum_spanning_edges(complete, "kruskal", data=False)}
        gold = {frozenset(edge) for edge in tree.edges if set(edge) <= set(keep)}
        self.edges, self.correct = self.edges + len(gold), self.correct + len(gold & found)
        self.sentences += 1
        self.roots += min(keep or range(n), key=lambda i: depths[i]) == sentence.root
        if 5 <= n <= 50:
            lengths = dict(nx.all_pairs_shortest_path_length(tree))
            true = [[lengths[i][j] for j in range(n)] for i in range(n)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = [spearmanr(distances[i], true[i]).statistic for i in range(n)]
                depth = spearmanr(depths, true[sentence.root]).statistic
            rows = [row for row in rows if not math.isnan(row)]
            self.dspr.setdefault(n, []).append(fmean(rows))
            self.nspr.setdefault(n, []).append(depth)

    def metrics(self):
        return {
            "uuas": self.correct / self.edges,
            "dspr": fmean(fmean(values) for values in self.dspr.values()),
            "root": self.roots / self.sentences,
            "nspr": fmean(fmean(values) for values in self.nspr.values()),
        }


@pytest.mark.parametrize(("n", "counts"), [(4, False), (5, True), (50, True), (51, False)])
def test_only_correlations_are_limited_to_5_to_50_words(n, counts):
    sentence = sentence_of(random_heads(n, seed=n))
    metrics = score(sentence, *gold_of(sentence))
    assert metrics["uuas"] == metrics["root"] == 1.0
    assert math.isnan(metrics["dspr"]) is not counts
    assert math.isnan(metrics["nspr"]) is not counts


def test_correlation_skips_sentences_with_constant_predictions():
    tally = Tally(1)
    tally.add(FIVE, np.zeros((1, 5, 5)), np.zeros((1, 5)))
    metrics = tally.scores().metrics()[0]
    assert math.isnan(metrics["dspr"] + metrics["nspr"])
    # every pair ties, so the first word is next to all others; and it is the shallowest
    assert metrics["uuas"] == pytest.approx(1 / 3)
    assert metrics["root"] == 0.0
    distances, depths = gold_of(FIVE)
    tally.add(FIVE, distances[None], depths[None])
    assert tally.scores().metrics()[0]["dspr"] == pytest.approx(1.0)
    assert tally.scores().metrics()[0]["nspr"] == pytest.approx(1.0)


def test_a_sentence_of_punctuation_has_a_root_but_no_edges():
    sentence = sentence_of((1, -1, 1), upos=["PUNCT"] * 3)
    metrics = score(sentence, chain(3), [2.0, 0.0, 1.0])
    assert math.isnan(metrics["uuas"])
    assert metrics["root"] == 1.0
    assert predicted_root(np.array([2.0, 0.0, 1.0]), np.zeros(3, bool)) == 1


def test_penn_treebank_tags_select_other_punctuation():
    sentence = sentence_of(
        (1, -1, 1, 1), upos=["PUNCT", "VERB", "PUNCT", "SYM"], xpos=["HYPH", "VB", ".", ":"]
    )
    kept = {"upos": [False, True, False, True], "ptb": [True, True, False, False]}
    for punct, wanted in (kept | {"none": [True] * 4}).items():
        assert kept_words(sentence, punct).tolist() == wanted
    assert len(PTB_TAGS) == 7


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_predictions_of_nan_are_refused(value):
    with pytest.raises(UserError, match=r"no finite numbers .* lower --lr"):
        score(FIVE, np.full((5, 5), value), np.zeros(5))
