"""Control trees: what each word type draws, by hand and against all draws there are."""

from collections import Counter
from itertools import islice, product

import networkx
import pytest

from probing.probes.control import BEHAVIORS, behavior, control_heads, control_tree
from probing.settings import PUNCTUATIONS
from tests.probing.helpers.trees import sentence_of

P, N, F = BEHAVIORS


def test_control_tree_matches_a_hand_computed_one():
    #            0  1  2  3  4  5  6  7
    behaviors = (F, N, P, N, P, F, P, N)
    keep = (False, True, True, True, False, True, True, True)
    # 0 and 4 are punctuation, 1 the root; 2 hangs on 1, 3 on 5 across the punctuation, 5 on the
    # root, 6 on 5; 7 has no word after it; 4 hangs on 3, and nothing on 4
    assert control_heads(behaviors, keep) == (1, -1, 1, 5, 3, 1, 5, 1)
    # 1 and 2 drew one another, so the first of them hangs on the root; 3 still hangs on 2
    assert control_heads((F, N, P, P), (True,) * 4) == (-1, 0, 1, 2)
    assert control_heads((N, P), (False, False)) == (-1, 0)


def wanted(behaviors, keep):
    """By a graph library: draw all arrows, then send the first word of each cycle to the root."""
    kept = [i for i, one in enumerate(keep) if one] or list(range(len(keep)))
    graph = networkx.DiGraph()
    for word, drawn in enumerate(behaviors):
        before = [i for i in kept if i < word]
        after = [i for i in kept if i > word]
        place = {P: before[-1:], N: after[:1], F: []}[drawn]
        if word != kept[0]:
            graph.add_edge(word, place[0] if place else kept[0])
    for cycle in list(networkx.simple_cycles(graph)):
        first = min(cycle)
        graph.remove_edges_from(list(graph.out_edges(first)))
        graph.add_edge(first, kept[0])
    return graph, kept


@pytest.mark.parametrize("count", range(2, 6))
def test_every_draw_for_a_short_sentence_is_a_tree(count):
    every = product(product(BEHAVIORS, repeat=count), product((True, False), repeat=count))
    # all of those of up to four words, and some of five
    for behaviors, keep in islice(every, 0, None, 1 if count < 5 else 7):
        heads = control_heads(behaviors, keep)
        graph, kept = wanted(behaviors, keep)
        assert set(graph.edges) == {(i, head) for i, head in enumerate(heads) if head >= 0}
        # nothing hangs on punctuation, so what metrics count is a tree as well
        assert networkx.is_tree(graph.to_undirected())
        assert networkx.is_tree(graph.to_undirected().subgraph(kept))


def test_each_word_type_draws_once_with_equal_probabilities():
    one, again, other = ([behavior(f"word{i}", s) for i in range(3000)] for s in (1, 1, 2))
    assert one == again != other
    assert all(abs(count - 1000) < 100 for count in Counter(one).values())


@pytest.mark.parametrize("punct", PUNCTUATIONS)
def test_control_trees_keep_words_and_punctuation(punct):
    sentence = sentence_of([-1, 0, 1, 2], ["PUNCT", "X", "X", "X"], ["NN", ",", "NN", "NN"])
    control = control_tree(sentence, 3, punct)
    for name in ("words", "upos", "tokens"):
        assert getattr(control, name) == getattr(sentence, name)
    kept = [i != {"upos": 0, "ptb": 1}.get(punct) for i in range(4)]
    assert control.heads == control_heads([behavior(word, 3) for word in sentence.words], kept)
