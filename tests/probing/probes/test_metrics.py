"""Metrics against hand-computed trees, networkx and scipy; their paired test against all tosses."""

import math
import warnings
from dataclasses import replace
from itertools import product
from statistics import fmean

import networkx as nx
import numpy as np
import pytest
from scipy.stats import spearmanr

from hyptrans.support.errors import UserError
from probing.probes import metrics, significance
from probing.probes.metrics import PTB_TAGS, Scores, Tally, kept_words, mean_scores, predicted_root
from probing.probes.significance import compare
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
        leaf = [i not in heads and heads[i] >= 0 for i in range(n)]
        upos = ["PUNCT" if one and rng.random() < punctuated else "NOUN" for one in leaf]
        distances = rng.integers(0, 6, (2, n, n)).astype(float)
        distances = (distances + distances.transpose(0, 2, 1)) * (1 - np.eye(n))
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
    distances, depths = (gold.astype(float) for gold in gold_of(FIVE))
    # the full stop next to everything, and shallowest
    distances[4, :] = distances[:, 4] = -1
    depths[4] = -1
    metrics = score(FIVE, distances, depths)
    assert metrics["uuas"] == metrics["root"] == 1.0
    assert max(metrics["dspr"], metrics["nspr"]) < 1


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
        # their gold edges: the minimum spanning tree of the gold distances over the words kept
        gold, keep = distance_matrix(sentence.heads), kept_words(sentence, punct)
        theirs += len(minimum_spanning_edges(gold, keep))
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


def by_definition(predictions):
    """The metrics of one layer, word by word."""
    edges, correct, roots, dspr, nspr = [], [], [], {}, {}
    for sentence, distances, depths in predictions:
        n, keep = len(sentence), [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
        tree, complete = nx.Graph(sentence.edges), nx.Graph()
        tree.add_nodes_from(range(n))
        pairs = [(i, j) for i in keep for j in keep if i < j]
        complete.add_weighted_edges_from((i, j, distances[i, j]) for i, j in pairs)
        found = {frozenset(e) for e in nx.minimum_spanning_edges(complete, "kruskal", data=False)}
        gold = {frozenset(edge) for edge in tree.edges if set(edge) <= set(keep)}
        edges.append(len(gold))
        correct.append(len(gold & found))
        roots.append(min(keep or range(n), key=lambda i: depths[i]) == sentence.root)
        if 5 <= n <= 50:
            lengths = dict(nx.all_pairs_shortest_path_length(tree))
            true = [[lengths[i][j] for j in range(n)] for i in range(n)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = [spearmanr(distances[i], true[i]).statistic for i in range(n)]
                depth = spearmanr(depths, true[sentence.root]).statistic
            dspr.setdefault(n, []).append(fmean(row for row in rows if not math.isnan(row)))
            nspr.setdefault(n, []).append(depth)
    dspr, nspr = (fmean(map(fmean, of_length.values())) for of_length in (dspr, nspr))
    return {"uuas": sum(correct) / sum(edges), "dspr": dspr, "root": fmean(roots), "nspr": nspr}


@pytest.mark.parametrize("seed", range(2))
def test_corpus_scores_match_loops_over_networkx_and_scipy(seed):
    tally, predictions = Tally(2), list(corpus(seed))
    for sentence, distances, depths in predictions:
        tally.add(sentence, distances, depths)
    for layer, found in enumerate(tally.scores().metrics()):
        own = [(tree, distances[layer], depths[layer]) for tree, distances, depths in predictions]
        assert found == pytest.approx(by_definition(own))


@pytest.mark.parametrize(("n", "counts"), [(4, False), (5, True), (50, True), (51, False)])
def test_only_correlations_are_limited_to_5_to_50_words(n, counts):
    sentence = sentence_of(random_heads(n, seed=n))
    metrics = score(sentence, *gold_of(sentence))
    assert metrics["uuas"] == metrics["root"] == 1.0
    assert math.isnan(metrics["dspr"]) is math.isnan(metrics["nspr"]) is not counts


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
    (metrics,) = tally.scores().metrics()
    assert metrics["dspr"] == metrics["nspr"] == pytest.approx(1.0)


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


BY_LAYER = ("found", "roots", "dspr", "nspr")


def pair(seed, count=40, better=0.0):
    """Return made-up scores of two encoders on the same sentences; each is right half the time."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 12, count)
    arcs, made = (lengths - 1)[:, None], []
    for more in (better, 0.0):
        found = rng.binomial(arcs, min(0.5 + more, 1.0))[None].astype(float)
        roots = (rng.random((1, count)) < 0.5 + more).astype(float)
        dspr, nspr = (np.clip(rng.normal(more, 0.3, (1, count)), -1, 1) for _ in range(2))
        dspr[:, lengths < 5] = nspr[:, lengths < 5] = np.nan
        made.append(Scores(lengths, arcs, found, roots, dspr, nspr))
    return made


def swapped(first, second, which):
    """Return both runs with the results of some sentences exchanged."""
    rows = {}
    for name in BY_LAYER:
        one, other = getattr(first, name), getattr(second, name)
        which_rows = which[:, None] if name == "found" else which
        rows[name] = np.where(which_rows, other, one), np.where(which_rows, one, other)
    return [replace(first, **{name: row[k] for name, row in rows.items()}) for k in (0, 1)]


def test_p_is_the_share_of_exchanges_with_as_large_a_difference():
    first, second = pair(3, count=10, better=0.2)
    found = {c.metric: c for c in compare(first, second)}
    assert set(found) == {"uuas", "dspr", "root", "nspr"}
    differences = {metric: [] for metric in found}
    for which in product([False, True], repeat=10):
        one, other = (s.metrics()[0] for s in swapped(first, second, np.array(which)))
        for metric in found:
            differences[metric].append(one[metric] - other[metric])
    for metric, comparison in found.items():
        values = np.array(differences[metric])
        assert comparison.difference == pytest.approx(values[0])
        exact = (np.abs(values) >= abs(values[0]) - 1e-9).mean()
        # three standard errors of 10,000 tosses
        error = 3 * (exact * (1 - exact) / 1e4) ** 0.5 + 1e-3
        assert comparison.p == pytest.approx(exact, abs=error)


def test_a_large_difference_has_the_smallest_possible_p():
    (uuas, *_) = compare(*pair(1, count=300, better=0.3))
    assert uuas.difference > 0.2
    # twice the smaller of the two one-sided shares
    assert uuas.p == pytest.approx(2 / (1 + significance.TOSSES))
    # what one sentence says may as well be chance, and so may equal results
    assert {c.p for c in compare(*pair(1, count=1, better=0.3))} == {1}
    assert {(c.p, c.difference) for c in compare(pair(1)[0], pair(1)[0])} == {(1, 0)}


def test_significance_ignores_sentences_that_one_side_lacks():
    first, second = pair(2)
    second.roots[:] = second.nspr[:] = np.nan
    # one sentence without a correlation leaves the others
    second.dspr[0, np.flatnonzero(~np.isnan(first.dspr[0]))[0]] = np.nan
    assert [c.metric for c in compare(first, second)] == ["uuas", "dspr"]


def test_significance_averages_runs_by_sentence():
    first, second = pair(4)
    mean = mean_scores([first, second])
    assert mean.correct == pytest.approx((first.correct + second.correct) / 2)
    (whole,) = mean.metrics()
    for metric, value in whole.items():
        one, other = (scores.metrics()[0][metric] for scores in (first, second))
        assert value == pytest.approx((one + other) / 2)
