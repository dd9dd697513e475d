"""Control trees have the shape of the gold ones, and words at other places."""

from collections import Counter

import pytest

from probing.probes.baselines import shuffled
from probing.settings import PUNCTUATIONS
from probing.text.trees import distance_matrix
from tests.probing.helpers.trees import random_heads, sentence_of


def trees(count):
    for seed in range(count):
        heads = random_heads(4 + seed % 12, seed)
        upos = ["PUNCT" if i not in heads and i % 3 == 0 else "NOUN" for i in range(len(heads))]
        xpos = ["," if i not in heads and i % 2 == 0 else "NN" for i in range(len(heads))]
        yield sentence_of(heads, upos, xpos, name=f"s{seed}")


@pytest.mark.parametrize("punct", PUNCTUATIONS)
def test_shape_and_counted_edges_stay_and_most_edges_change(punct):
    kept = total = 0
    for sentence in trees(60):
        control = shuffled(sentence, 1, punct)
        gold, new = (distance_matrix(s.heads) for s in (sentence, control))
        assert sorted(new[control.root]) == sorted(gold[sentence.root])
        assert Counter(new.ravel().tolist()) == Counter(gold.ravel().tolist())
        tags = zip(sentence.upos, sentence.xpos, strict=True)
        words = [upos != "PUNCT" if punct == "upos" else xpos != "," for upos, xpos in tags]
        counted = [
            {(i, j) for i, j in s.edges if words[i] and words[j]} for s in (sentence, control)
        ]
        assert len(counted[0]) == len(counted[1])
        kept, total = kept + len(counted[0] & counted[1]), total + len(counted[0])
        assert (control.words, control.upos) == (sentence.words, sentence.upos)
    assert kept < 0.35 * total


def test_the_same_seed_gives_the_same_tree_and_another_another():
    (sentence,) = (s for s in trees(12) if len(s) == 15)
    assert shuffled(sentence, 3).heads == shuffled(sentence, 3).heads
    assert len({shuffled(sentence, seed).heads for seed in range(9)}) > 6


def test_every_word_is_the_root_equally_often():
    sentence = sentence_of((-1, 0, 1, 1, 3))
    roots = Counter(shuffled(sentence, seed).root for seed in range(2000))
    assert set(roots) == set(range(5))
    assert max(roots.values()) < 500
