"""Control trees, after the control tasks of Hewitt and Liang (2019).

Each word type draws once whether its words depend on the word before, on the word after or on the
first word. Such trees have no linguistic structure, yet a probe can learn them by recognizing the
words and memorizing what each type drew. Selectivity is how much better it learns real trees.
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
    """Draw the behavior of a word type; upper and lower case are different types."""
    return random.Random(f"{seed} {word}").choice(BEHAVIORS)


def control_heads(behaviors: Sequence[Behavior], keep: Sequence[bool]) -> tuple[int, ...]:
    """Return the heads of a control tree, numbered from 0; -1 for the root.

    Only kept words become heads, so that the edges between them form a tree. The first kept word is
    the root. A word without the neighbour that it drew depends on the root; so does the first of
    two words that drew each other. Longer cycles do not occur. If no word is kept, all are.
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
    """Return the sentence with its control tree in place of its own.

    Raises:
        UserError: the sentence has no tags to recognize punctuation by.
    """
    behaviors = [behavior(word, seed) for word in sentence.words]
    heads = control_heads(behaviors, kept_words(sentence, punct).tolist())
    return replace(sentence, heads=heads)
