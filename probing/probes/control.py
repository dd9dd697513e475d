"""Control trees, after the control tasks of Hewitt and Liang (2019).

Each word type draws once whether its words hang on the word before, on the word after or on the
first word. Such trees hold nothing of a language, and yet a probe can learn them: it has to know
the words and to keep in mind what each drew. Selectivity is how much better it learns real trees.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from probing.probes.metrics import kept_words
from probing.settings import Punctuation
from probing.text.trees import Sentence

Behavior = Literal["previous", "next", "first"]
BEHAVIORS: tuple[Behavior, ...] = get_args(Behavior)


def behavior(word: str, seed: int) -> Behavior:
    """What a word type drew; upper and lower case are two types."""
    return random.Random(f"{seed} {word}").choice(BEHAVIORS)


def control_heads(behaviors: Sequence[Behavior], keep: Sequence[bool]) -> tuple[int, ...]:
    """The heads of a control tree, from 0; -1 for the root.

    Only words to keep are hung on, so that edges between them are a tree. The first of them is the
    root. A word without the neighbour that it drew hangs on the root, and of two that drew one
    another the first does: there are no longer cycles.

    Args:
        behaviors: what each word drew.
        keep: which words are no punctuation; where none is, all are taken.
    """
    kept = np.flatnonzero(keep) if any(keep) else np.arange(len(behaviors))
    root = int(kept[0])
    heads = []
    for word, drawn in enumerate(behaviors):
        neighbours = {"previous": kept[kept < word][-1:], "next": kept[kept > word][:1]}
        found = neighbours.get(drawn, kept[:1])
        heads.append(int(found[0]) if len(found) else root)
    heads[root] = -1
    for word in kept.tolist():
        if word < heads[word] and heads[heads[word]] == word:
            heads[word] = root
    return tuple(heads)


def control_tree(sentence: Sentence, seed: int, punct: Punctuation = "upos") -> Sentence:
    """The sentence with its control tree in place of its own.

    Raises:
        UserError: the sentence has none of the tags that tell punctuation.
    """
    behaviors = [behavior(word, seed) for word in sentence.words]
    heads = control_heads(behaviors, kept_words(sentence, punct).tolist())
    return replace(sentence, heads=heads)
